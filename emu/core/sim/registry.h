/* Registries: tables whose entries are in several files.
 *
 * Each file enters its own object, so that a new entry is a new file and no line elsewhere:
 *
 *     cc_swift.c    static const struct cc_algorithm swift = {...};
 *                   REGISTER(cc_algorithms, swift)
 *
 *     cc.c          REGISTRY(struct cc_algorithm, cc_algorithms);
 *                   for (size_t i = 0; i < REGISTRY_SIZE(cc_algorithms); i++)
 *                       ... REGISTRY_AT(cc_algorithms, i) ...
 *
 * An entry is a pointer in a section that bears the registry's name. The linker joins all of them
 * to one array, and marks its ends with the symbols __start_NAME and __stop_NAME. The order of
 * the entries is the linker's. */
#ifndef EMU_SIM_REGISTRY_H
#define EMU_SIM_REGISTRY_H

#include <stddef.h>
#include <string.h>

#define REGISTER(registry, object)                                                                 \
    static const void *const object##_entry __attribute__((section(#registry), used)) = &(object);

#define REGISTRY(type, registry)                                                                   \
    extern const type *const __start_##registry[], *const __stop_##registry[]

#define REGISTRY_SIZE(registry) ((size_t)(__stop_##registry - __start_##registry))
#define REGISTRY_AT(registry, index) (__start_##registry[index])

/* The entry of that name; NULL when there is none. Entries begin with `const char *name`. */
#define REGISTRY_NAMED(registry, name) registry_named(__start_##registry, __stop_##registry, name)

static inline const void *registry_named(const void *first, const void *end, const char *name)
{
    for (const char *const *const *entry = first; name && entry != end; entry++)
        if (strcmp(**entry, name) == 0)
            return *entry;
    return NULL;
}

#endif
