/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "hook/metal.h"
#include "hook/traces.h"

const struct ttm_metal *ttm_metal_load(void)
{
    static char path[PATH_MAX]; /* called once, on a stack that is not ours to fill */
    Dl_info info;

    if (!dladdr(&path, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    const int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
    const int length =
        snprintf(path, sizeof(path), "%.*slibttmem-metal.so", folder, info.dli_fname);
    if (length < 0 || (size_t)length >= sizeof(path))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct ttm_metal *metal = library ? dlsym(library, "ttm_metal_table") : NULL;
    if (metal)
        ttm_traces_hide(metal);
    return metal;
}
