/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/own.h"

__thread struct ttm_own ttm_own __attribute__((tls_model("initial-exec")));
