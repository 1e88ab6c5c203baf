/* Parameters of a struct that are set by name, so that a new parameter needs no code in the layers
 * between. Congestion controls, queue disciplines and faults have theirs in this way. */
#ifndef EMU_SIM_PARAMETER_FIELD_H
#define EMU_SIM_PARAMETER_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/parameter.h"

/* An unsigned integer or a double in a struct, or an array of them. A list of fields ends with one
 * that has no name. */
struct parameter_field {
    const char *name;
    size_t offset, bytes; /* of one element */
    size_t stride;        /* from one element to the next */
    uint32_t elements;
    bool is_real; /* a double */
};

#define PARAMETER_FIELD(type, member) PARAMETER_ROW(#member, type, member, member, 1)
#define PARAMETER_ARRAY(type, member)                                                              \
    PARAMETER_ROW(#member, type, member[0], member[0], MEMBER_ELEMENTS(type, member))
/* A member of each struct in an array of structs. */
#define PARAMETER_OF_EACH(type, array, member)                                                     \
    PARAMETER_ROW(#member, type, array[0].member, array[0], MEMBER_ELEMENTS(type, array))

/* The first element, and a member as long as the step from one element to the next. */
#define PARAMETER_ROW(name, type, first, step, elements)                                           \
    {                                                                                              \
        name, offsetof(struct type, first), MEMBER_SIZE(type, first), MEMBER_SIZE(type, step),     \
            elements,                                                                              \
            _Generic(((struct type *)0)->first, double                                             \
                     : true, default                                                               \
                     : false)                                                                      \
    }
#define MEMBER_SIZE(type, member) sizeof(((struct type *)0)->member)
#define MEMBER_ELEMENTS(type, member) (MEMBER_SIZE(type, member) / MEMBER_SIZE(type, member[0]))

/* Sets the fields of a struct. False when it has no field of a name, or fewer elements than there
 * are values, or when a value does not fit: it is too large, or real and the field an integer or
 * the other way round. Fields that are not named stay as they are. */
bool parameters_set(void *to, const struct parameter_field *fields,
                    const struct parameter *parameters, uint32_t count);

/* The name of a field; NULL after the last. `fields` may be NULL. */
const char *parameter_name(const struct parameter_field *fields, uint32_t place);

#endif
