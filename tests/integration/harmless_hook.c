/* SPDX-License-Identifier: Apache-2.0 */
/* A library that any program can be made to load, and that does nothing there. */
extern const int ttm_harmless;
const int ttm_harmless = 1;
