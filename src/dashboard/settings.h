/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings - what a user has chosen, kept in a file of theirs.
 *
 *   $XDG_CONFIG_HOME/tt-mem/top.conf, or ~/.config/tt-mem/top.conf
 *
 * One "name = value" a line. Reading is tolerant: what is missing, unknown or
 * nonsense leaves the default.
 */
#ifndef TTM_DASHBOARD_SETTINGS_H
#define TTM_DASHBOARD_SETTINGS_H

#include "base/text.h"
#include "dashboard/view.h"

/* Changes what the text tells, and nothing else. */
void ttm_settings_parse(const char *text, struct ttm_view_settings *settings);

/* The same the other way. */
void ttm_settings_print(const struct ttm_view_settings *settings, struct ttm_text *out);

/* Defaults where there is no file. */
void ttm_settings_load(struct ttm_view_settings *ret);

/* Writes a new file and puts it in the place of the old one. Returns 0 or -errno. */
int ttm_settings_save(const struct ttm_view_settings *settings);

#endif /* TTM_DASHBOARD_SETTINGS_H */
