/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_words - what a screen speaks of when only a part was asked for.
 *
 * A verdict on a part must say so: "nothing remains" with a filter is no all-clear.
 */
#ifndef TTM_CLI_FILTER_WORDS_H
#define TTM_CLI_FILTER_WORDS_H

#include "base/text.h"
#include "wire/request.h"

/* " in DRAM", " on devices 0-3,7", " in L1 on device 5"; nothing for all. 'region': -1 for all. */
void ttm_filter_words(const struct ttm_device_filter *devices, int region, struct ttm_text *out);

#endif /* TTM_CLI_FILTER_WORDS_H */
