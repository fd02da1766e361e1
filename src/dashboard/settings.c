/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX 4096

static void take_word(const char *name, const char *value, struct ttm_view_settings *settings)
{
    const long number = strtol(value, NULL, 10);

    if (strcmp(name, "view") == 0 && number >= 1 && number <= TTM_PAGE_COUNT)
        settings->page = (enum ttm_view_page)(number - 1);
    for (unsigned i = 0; strcmp(name, "processes_by") == 0 && i < TTM_PROCESS_SORT_COUNT; i++) {
        if (strcmp(value, ttm_process_sort_name(i)) == 0)
            settings->process_sort = i;
    }
    for (unsigned i = 0; strcmp(name, "origins_by") == 0 && i < TTM_ORIGIN_SORT_END; i++) {
        if (strcmp(value, ttm_origin_sort_name(i)) == 0)
            settings->origin_sort = i;
    }
    for (size_t i = 0; strcmp(name, "window_s") == 0 && i < TTM_VIEW_WINDOW_COUNT; i++) {
        if (number == (long)ttm_view_windows_s[i])
            settings->window_s = ttm_view_windows_s[i];
    }
    if (strcmp(name, "processes_reversed") == 0)
        settings->is_reversed[TTM_PAGE_DEVICES] = number == 1;
    if (strcmp(name, "origins_reversed") == 0)
        settings->is_reversed[TTM_PAGE_ORIGINS] = number == 1;
}

void ttm_settings_parse(const char *text, struct ttm_view_settings *settings)
{
    while (*text) {
        const size_t length = strcspn(text, "\n");
        char line[128], name[64], value[64];
        (void)snprintf(line, sizeof(line), "%.*s", (int)(length < 127 ? length : 127), text);
        if (sscanf(line, " %63[a-z_] = %63[a-z0-9_]", name, value) == 2)
            take_word(name, value, settings);
        text += length + (text[length] == '\n');
    }
}

void ttm_settings_print(const struct ttm_view_settings *settings, struct ttm_text *out)
{
    ttm_text_format(out, "# what tt-mem top remembers\nview = %d\n", (int)settings->page + 1);
    ttm_text_format(out, "processes_by = %s\n", ttm_process_sort_name(settings->process_sort));
    ttm_text_format(out, "processes_reversed = %d\n", settings->is_reversed[TTM_PAGE_DEVICES]);
    ttm_text_format(out, "origins_by = %s\n", ttm_origin_sort_name(settings->origin_sort));
    ttm_text_format(out, "origins_reversed = %d\n", settings->is_reversed[TTM_PAGE_ORIGINS]);
    ttm_text_format(out, "window_s = %u\n", settings->window_s);
}

/* The folder, of which the last part may be missing. Returns 0 or -ENOENT. */
static int folder_path(char ret[PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int n = PATH_MAX;

    if (config && config[0] == '/')
        n = snprintf(ret, PATH_MAX, "%s/tt-mem", config);
    else if (home && home[0] == '/')
        n = snprintf(ret, PATH_MAX, "%s/.config/tt-mem", home);
    return n < PATH_MAX - 32 ? 0 : -ENOENT;
}

void ttm_settings_load(struct ttm_view_settings *ret)
{
    char path[PATH_MAX], text[FILE_SIZE_MAX + 1];

    *ret = ttm_view_defaults;
    if (folder_path(path) < 0)
        return;
    const size_t length = strlen(path); /* folder_path() has left room for it */
    (void)snprintf(path + length, sizeof(path) - length, "/top.conf");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    const ssize_t n = read(fd, text, FILE_SIZE_MAX);
    (void)close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    ttm_settings_parse(text, ret);
}

static int write_file(const char *path, const struct ttm_text *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return -errno;
    errno = EIO;
    const bool is_whole = write(fd, ttm_text_string(text), text->length) == (ssize_t)text->length;
    const int r = is_whole ? 0 : -errno;
    return close(fd) < 0 && r == 0 ? -errno : r;
}

int ttm_settings_save(const struct ttm_view_settings *settings)
{
    char folder[PATH_MAX], path[PATH_MAX + 32], fresh[PATH_MAX + 64];
    struct ttm_text text;

    int r = folder_path(folder);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/top.conf", folder);
    (void)snprintf(fresh, sizeof(fresh), "%s.%d", path, (int)getpid());
    char *last = strrchr(folder, '/');
    *last = '\0';
    (void)mkdir(folder, 0700);
    *last = '/';
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return -errno;
    ttm_text_init(&text);
    ttm_settings_print(settings, &text);
    r = ttm_text_failed(&text) ? -ENOMEM : write_file(fresh, &text);
    ttm_text_done(&text);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(fresh);
    return r;
}
