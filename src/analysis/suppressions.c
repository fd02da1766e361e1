/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/suppressions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERNS_MAX 4096u

void ttm_suppressions_done(struct ttm_suppressions *suppressions)
{
    for (uint32_t i = 0; i < suppressions->count; i++)
        free(suppressions->list[i].pattern);
    free(suppressions->list);
    *suppressions = (struct ttm_suppressions){0};
}

static int add(struct ttm_suppressions *suppressions, const char *pattern)
{
    struct ttm_suppression *grown =
        realloc(suppressions->list, (suppressions->count + 1) * sizeof(grown[0]));

    if (!grown)
        return -ENOMEM;
    suppressions->list = grown;
    char *copy = strdup(pattern);
    if (!copy)
        return -ENOMEM;
    suppressions->list[suppressions->count++] = (struct ttm_suppression){.pattern = copy};
    return 0;
}

/* One line, which is changed. Returns 0, -EBADMSG or -ENOMEM. */
static int take_line(struct ttm_suppressions *suppressions, char *line)
{
    static const char head[] = "leak:";

    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = '\0';
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'); n--)
        line[n - 1] = '\0';
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (strncmp(line, head, sizeof(head) - 1) != 0 || line[sizeof(head) - 1] == '\0' ||
        suppressions->count == PATTERNS_MAX)
        return -EBADMSG;
    return add(suppressions, line + sizeof(head) - 1);
}

int ttm_suppressions_read(const char *path, struct ttm_suppressions *ret, unsigned *ret_line)
{
    struct ttm_suppressions read = {0};
    char *line = NULL;
    size_t room = 0;
    int r = 0;
    FILE *file = fopen(path, "re");

    *ret_line = 0;
    if (!file)
        return -errno;
    errno = 0;
    while (r == 0 && getline(&line, &room, file) >= 0) {
        (*ret_line)++;
        r = take_line(&read, line);
    }
    if (r == 0 && ferror(file))
        r = errno != 0 ? -errno : -EIO;
    free(line);
    (void)fclose(file);
    if (r < 0) {
        ttm_suppressions_done(&read);
        return r;
    }
    *ret = read;
    return 0;
}

/* Whether the pattern fits the beginning of the text; with 'is_whole' all of it. */
static bool fits_here(const char *pattern, const char *text, bool is_whole)
{
    const char *star = NULL, *retry = NULL;

    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
            continue;
        }
        if (*pattern == '\0' && (!is_whole || *text == '\0'))
            return true;
        if (*pattern != '\0' && *pattern == *text) {
            pattern++;
            text++;
            continue;
        }
        if (!star || *retry == '\0')
            return false;
        pattern = star;
        text = ++retry;
    }
}

bool ttm_suppression_fits(const char *pattern, const char *text)
{
    char body[512];
    const bool is_anchored = pattern[0] == '^';
    size_t n = strlen(pattern += is_anchored);
    const bool is_whole = n > 0 && pattern[n - 1] == '$';

    n -= is_whole;
    if (n >= sizeof(body))
        return false;
    memcpy(body, pattern, n);
    body[n] = '\0';
    do {
        if (fits_here(body, text, is_whole))
            return true;
    } while (!is_anchored && *text++ != '\0');
    return false;
}

static bool fits_origin(const char *pattern, const struct ttm_origin_words *words)
{
    if (strcmp(pattern, "*") == 0) /* also what nothing is known of */
        return true;
    for (uint32_t i = 0; i < words->python_count; i++) {
        if (ttm_suppression_fits(pattern, words->python[i].file) ||
            ttm_suppression_fits(pattern, words->python[i].function))
            return true;
    }
    for (uint32_t i = 0; i < words->native_count; i++) {
        if (ttm_suppression_fits(pattern, words->native[i]))
            return true;
    }
    const char *const others[] = {words->operation, words->name, words->context};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i][0] != '\0' && ttm_suppression_fits(pattern, others[i]))
            return true;
    }
    return false;
}

uint32_t ttm_suppressions_apply(struct ttm_suppressions *suppressions, struct ttm_report *report)
{
    uint32_t cleared = 0;

    for (uint32_t p = 0; p < report->process_count; p++) {
        struct ttm_report_process *process = &report->processes[p];
        for (uint32_t o = 0; o < process->origin_count; o++) {
            struct ttm_report_origin *origin = &process->origins[o];
            for (uint32_t s = 0; s < suppressions->count && origin->verdict.is_suspect; s++) {
                if (!fits_origin(suppressions->list[s].pattern, &origin->words))
                    continue;
                origin->verdict.is_suspect = false;
                origin->is_suppressed = true;
                suppressions->list[s].matches++;
                cleared++;
            }
        }
    }
    report->suppressed += cleared;
    return cleared;
}
