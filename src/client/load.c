/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when libttmem.so is loaded. It is not in the static library, whose
 * user, the demo, is one command of many and begins by itself.
 */
#include "client/switch.h"

__attribute__((constructor)) static void begin(void)
{
    ttm_switch_begin();
}
