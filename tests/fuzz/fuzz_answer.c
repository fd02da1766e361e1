/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command makes of whatever a server says: the frames of the input become
 * an answer, and the answer is shown in every form. No form may carry a control
 * character to the terminal, and JSON has to be JSON.
 */
#include "fuzzing.h"

#include <ctype.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/dump_json.h"
#include "cli/dump_text.h"
#include "cli/monitor_render.h"
#include "dashboard/origins.h"
#include "query/answer.h"

/* Moves behind the JSON value at 's'; NULL where there is none. */
static const char *skip_value(const char *s, int depth);

static const char *skip_string(const char *s)
{
    if (*s++ != '"')
        return NULL;
    for (; *s && *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL;
        if (*s == '\\' && !strchr("\"\\/bfnrtu", *++s))
            return NULL;
    }
    return *s == '"' ? s + 1 : NULL;
}

static const char *skip_members(const char *s, char close, int depth)
{
    if (*s == close)
        return s + 1;
    while (1) {
        if (close == '}') {
            s = skip_string(s);
            if (!s || *s++ != ':')
                return NULL;
        }
        s = skip_value(s, depth + 1);
        if (!s || (*s != ',' && *s != close))
            return NULL;
        if (*s++ == close)
            return s;
    }
}

static const char *skip_value(const char *s, int depth)
{
    static const char *const words[] = {"true", "false", "null"};

    if (depth > 64)
        return NULL;
    if (*s == '{' || *s == '[')
        return skip_members(s + 1, *s == '{' ? '}' : ']', depth);
    if (*s == '"')
        return skip_string(s);
    for (size_t i = 0; i < 3; i++) {
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    }
    if (*s == '-')
        s++;
    if (!isdigit((unsigned char)*s))
        return NULL;
    while (isdigit((unsigned char)*s) || *s == '.')
        s++;
    return s;
}

static void must_be_json(const struct ttm_text *text)
{
    const char *end = skip_value(ttm_text_string(text), 0);

    MUST(end);
    MUST(strcmp(end, "\n") == 0 || *end == '\0');
}

static void must_be_harmless(const struct ttm_text *text)
{
    MUST(strlen(ttm_text_string(text)) == text->length);
    for (size_t i = 0; i < text->length; i++)
        MUST((unsigned char)text->data[i] >= 0x20 || text->data[i] == '\n');
    for (const char *s = ttm_text_string(text); *s; s += ttm_utf8_length(s))
        MUST(ttm_utf8_length(s) > 0);
}

static void show(const struct ttm_answer *answer, bool is_wide)
{
    const struct ttm_terminal terminal = {.has_utf8 = is_wide, .columns = is_wide ? 200 : 40};
    struct ttm_dump_choice choice = {.devices = {.is_all = true}, .is_unfolded = is_wide};
    const struct ttm_monitor_look look = {.answer = answer, .devices = &choice.devices};
    struct ttm_text text;

    ttm_text_init(&text);
    ttm_monitor_text(&look, &terminal, &text);
    must_be_harmless(&text);
    ttm_text_clear(&text);
    MUST(ttm_dump_text(answer, &choice, &terminal, &text) == 0);
    must_be_harmless(&text);
    ttm_text_clear(&text);
    ttm_monitor_csv(&look, &text);
    must_be_harmless(&text);
    ttm_text_clear(&text);
    ttm_monitor_json(&look, &text);
    must_be_json(&text);
    ttm_text_clear(&text);
    MUST(ttm_dump_json(answer, &choice, &text) == 0);
    must_be_json(&text);
    ttm_text_clear(&text);
    choice.is_kernels = true;
    MUST(ttm_dump_text(answer, &choice, &terminal, &text) == 0);
    must_be_harmless(&text);
    ttm_text_done(&text);
}

/* As the dashboard shows it: every origin, and the banks of each. */
static void look_closer(const struct ttm_answer *answer)
{
    static struct ttm_origins origins;
    static struct ttm_bank bank;
    struct ttm_origins_source source = {.answers = answer,
                                        .answer_count = 1,
                                        .lives = answer,
                                        .lives_count = 1,
                                        .devices.is_all = true};
    struct ttm_origin_detail detail;

    MUST(ttm_origins_build(&origins, &source) == 0);
    for (size_t i = 0; i < origins.count && i < 8; i++) {
        const struct ttm_origin_group *group = &origins.groups[i];
        MUST(group->count > 0 && group->first_device < TTM_DEVICE_COUNT);
        ttm_origins_detail(&source, group, &detail);
        MUST(detail.live_count <= TTM_DETAIL_LIVES && detail.live_count <= detail.seen_count);
        MUST(ttm_bank_build(&bank, &source, group->first_device, group->region) == 0);
        MUST(bank.largest_free_bytes <= bank.free_bytes);
    }
}

/* A socket whose other end is gone: what is not in the input will never come. */
static int dead_end(void)
{
    int ends[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    (void)close(ends[1]);
    return ends[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    struct ttm_connection conn = {0};
    struct ttm_answer answer;

    if (fd < 0)
        fd = dead_end();
    conn.fd = fd;
    ttm_queue_init(&conn.in);
    ttm_answer_init(&answer);
    if (size > 0)
        MUST(ttm_queue_append(&conn.in, data, size) == 0);
    MUST(ttm_frame_append(&conn.in, TTM_FRAME_END, NULL, 0) == 0);
    if (ttm_answer_receive(&conn, 0, &answer) == 0) {
        show(&answer, false);
        show(&answer, true);
        look_closer(&answer);
    }
    ttm_answer_done(&answer);
    ttm_queue_done(&conn.in);
    return 0;
}
