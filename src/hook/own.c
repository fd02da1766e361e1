/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/own.h"

#include "hook/hot.h"

__thread struct ttm_own ttm_own __attribute__((tls_model("initial-exec")));
struct ttm_hot ttm_hot;
