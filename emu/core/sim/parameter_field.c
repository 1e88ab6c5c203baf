#include "sim/parameter_field.h"

#include <string.h>

static const struct parameter_field *field_named(const struct parameter_field *fields,
                                                 const char *name)
{
    for (const struct parameter_field *field = fields; field && field->name; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

/* False when the value does not fit. */
static bool store(void *to, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case sizeof(uint8_t):
        *(uint8_t *)to = (uint8_t)value;
        return value <= UINT8_MAX;
    case sizeof(uint16_t):
        *(uint16_t *)to = (uint16_t)value;
        return value <= UINT16_MAX;
    case sizeof(uint32_t):
        *(uint32_t *)to = (uint32_t)value;
        return value <= UINT32_MAX;
    default:
        *(uint64_t *)to = value;
        return true;
    }
}

static bool set_parameter(void *to, const struct parameter_field *field,
                          const struct parameter *parameter)
{
    if (!field || parameter->count > field->elements || field->is_real != !!parameter->reals)
        return false;
    bool fits = true;
    for (uint32_t i = 0; i < parameter->count; i++) {
        char *element = (char *)to + field->offset + i * field->stride;
        if (field->is_real)
            *(double *)element = parameter->reals[i];
        else
            fits &= store(element, field->bytes, parameter->values[i]);
    }
    return fits;
}

bool parameters_set(void *to, const struct parameter_field *fields,
                    const struct parameter *parameters, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!set_parameter(to, field_named(fields, parameters[i].name), &parameters[i]))
            return false;
    return true;
}

const char *parameter_name(const struct parameter_field *fields, uint32_t place)
{
    while (place-- && fields && fields->name)
        fields++;
    return fields ? fields->name : NULL;
}
