#include "cc.h"

#include <stddef.h>
#include <string.h>

static const struct cc_algorithm *const algorithms[] = {&cc_none, &cc_dcqcn, &cc_dcqcn_nvidia,
                                                        &cc_cct};

const struct cc_algorithm *cc_named(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (name && strcmp(algorithms[i]->name, name) == 0)
            return algorithms[i];
    return NULL;
}
