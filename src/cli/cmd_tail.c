/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line an event. The lines are those of the original server's output, with
 * what it did not know added at their end, so that scripts written for it work.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/origin_text.h"
#include "cli/tail_origins.h"
#include "cli/terminal.h"
#include "cli/words_json.h"
#include "wire/event.h"

enum { OPTION_PID = 256 };

static const struct ttm_option options[] = {
    TTM_OPTION_DEVICE,
    {.id = OPTION_PID, .name = "pid", .arg = "PID", .help = "only this process"},
    TTM_OPTION_JSON,
    TTM_OPTION_SOCKET,
    TTM_OPTION_HELP_ROW,
    {0},
};

/* How lines look. */
struct style {
    const char *birth, *end, *odd;  /* what a line begins with: a birth, an end, or it is amiss */
    struct ttm_native_names *names; /* may be NULL */
};

/*
 * Those of the original, whose lines are UTF-8 whatever the locale: scripts get just these. A
 * terminal that cannot show them gets others.
 */
static struct style choose_style(void)
{
    const struct ttm_terminal terminal = ttm_terminal_of(STDOUT_FILENO);

    return terminal.is_terminal && !terminal.has_utf8 ? (struct style){"+", "-", "!", NULL}
                                                      : (struct style){"✓", "✗", "⚠", NULL};
}

/* "0.25 MB": to the byte, without zeros at the end. */
static void put_mb(struct ttm_text *out, uint64_t bytes)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%.6f", (double)bytes / (1024 * 1024));

    while (n > 0 && text[n - 1] == '0')
        n--;
    if (n > 0 && text[n - 1] == '.')
        n--;
    text[n] = '\0';
    ttm_text_format(out, "%s MB", text);
}

/* ", decode.py:28 cache_kv (ttnn.zeros)": where what is born comes from. */
static void put_from(struct ttm_text *out, const struct style *style, const struct ttm_event *event,
                     const struct ttm_answer_origin *origin)
{
    struct ttm_text words;

    if (event->op != TTM_EVENT_BIRTH)
        return;
    ttm_text_init(&words);
    ttm_native_names_choose(style->names, event->pid);
    ttm_origin_text(&words, origin, style->names);
    if (words.length > 0) {
        ttm_text_append(out, ", ");
        words.data[--words.length] = '\0'; /* the space behind it */
        ttm_text_append(out, ttm_text_string(&words));
    }
    out->failed |= words.failed;
    ttm_text_done(&words);
}

/* Circular buffers and kernels: "✓ [CB_ALLOC] Device 0: +0.25 MB (Total: 0.25 MB) …". */
static void put_program_line(struct ttm_text *out, const struct style *style,
                             const struct ttm_event *event, const struct ttm_answer_origin *origin)
{
    const bool is_birth = event->op == TTM_EVENT_BIRTH;
    const bool is_cb = event->region == TTM_REGION_CB;
    static const char *const kinds[] = {"Application", "Fabric", "Dispatch"};

    ttm_text_format(out, "%s [%s] ", is_birth ? style->birth : style->end,
                    is_cb ? (is_birth ? "CB_ALLOC" : "CB_FREE")
                          : (is_birth ? "KERNEL_LOAD" : "KERNEL_UNLOAD"));
    if (!is_cb)
        ttm_text_format(out, "%s kernel on ", kinds[event->kind]);
    ttm_text_format(out, "Device %u: %s", event->device_id, is_birth ? "+" : "-");
    put_mb(out, event->bytes);
    ttm_text_append(out, " (Total: ");
    put_mb(out, event->total_bytes);
    ttm_text_format(out, ") [PID %d] %" PRIu64 " bytes, id=0x%" PRIx64 "%s", event->pid,
                    event->bytes, event->id,
                    event->op == TTM_EVENT_REPLACED ? ", replaced"
                    : event->op == TTM_EVENT_CLOSED ? ", device closed"
                                                    : "");
    put_from(out, style, event, origin);
    ttm_text_append(out, "\n");
}

static void put_buffer_line(struct ttm_text *out, const struct style *style,
                            const struct ttm_event *event, const struct ttm_answer_origin *origin)
{
    const char *region = ttm_region_name(event->region);

    switch ((enum ttm_event_op)event->op) {
    case TTM_EVENT_BIRTH:
        ttm_text_format(out,
                        "%s [PID %d] Allocated %" PRIu64
                        " bytes of %s on device %u (buffer_id=0x%" PRIx64 ") Total: ",
                        style->birth, event->pid, event->bytes, region, event->device_id,
                        event->id);
        put_mb(out, event->total_bytes);
        break;
    case TTM_EVENT_END:
    case TTM_EVENT_REPLACED:
    case TTM_EVENT_CLOSED:
        ttm_text_format(out,
                        "%s [PID %d] Freed buffer 0x%" PRIx64 " on device %u (%" PRIu64
                        " bytes, %s) of %s Total: ",
                        style->end, event->pid, event->id, event->device_id, event->bytes,
                        event->op == TTM_EVENT_END      ? "FINAL"
                        : event->op == TTM_EVENT_CLOSED ? "DEVICE CLOSED"
                                                        : "REPLACED",
                        region);
        put_mb(out, event->total_bytes);
        break;
    case TTM_EVENT_UNKNOWN_END:
        ttm_text_format(out,
                        "%s [PID %d] Deallocation for unknown buffer 0x%" PRIx64
                        " on device %u (allocated before tracking started)",
                        style->odd, event->pid, event->id, event->device_id);
        break;
    case TTM_EVENT_PROCESS_END:
        ttm_text_format(out, "%s [PID %d] Ended, %" PRIu64 " %s went with it (", style->end,
                        event->pid, event->id, event->id == 1 ? "allocation" : "allocations");
        put_mb(out, event->bytes);
        ttm_text_append(out, ")");
        break;
    case TTM_EVENT_OP_COUNT:
        break;
    }
    put_from(out, style, event, origin);
    ttm_text_append(out, "\n");
}

static void put_line(struct ttm_text *out, const struct style *style, const struct ttm_event *event,
                     const struct ttm_answer_origin *origin)
{
    const bool is_of_program = event->region == TTM_REGION_CB || event->region == TTM_REGION_KERNEL;

    if (is_of_program && event->op != TTM_EVENT_UNKNOWN_END)
        put_program_line(out, style, event, origin);
    else
        put_buffer_line(out, style, event, origin);
}

/* Keys as in the origins of 'tt-mem dump'; native frames as they came, "/lib/libfoo.so+0x12". */
static void put_json_origin(struct ttm_json *json, const struct ttm_answer_origin *origin)
{
    ttm_lines_json(json, "python", origin->python);
    ttm_lines_json(json, "native", origin->native);
    ttm_json_put_string(json, "operation", origin->operation);
    ttm_json_put_string(json, "name", origin->name);
    ttm_json_put_string(json, "context", origin->context);
    ttm_json_put_string(json, "thread", origin->thread);
}

static void put_json(struct ttm_text *out, const struct ttm_event *event,
                     const struct ttm_answer_origin *origin)
{
    static const char *const names[] = {"alloc",        "free",        "replaced",
                                        "unknown_free", "process_end", "device_closed"};
    struct ttm_json json;

    ttm_json_init(&json, out);
    ttm_json_object_begin(&json);
    ttm_json_put_u64(&json, "time_ns", event->time_ns);
    ttm_json_put_string(&json, "event", names[event->op]);
    ttm_json_put_i64(&json, "pid", event->pid);
    if (event->op == TTM_EVENT_PROCESS_END) {
        ttm_json_put_u64(&json, "count", event->id);
        ttm_json_put_u64(&json, "bytes", event->bytes);
    } else {
        ttm_json_put_u64(&json, "device", event->device_id);
        /* A free names no region; of the unknown, none is known. */
        if (event->op == TTM_EVENT_UNKNOWN_END && event->region <= TTM_REGION_TRACE)
            ttm_json_put_null(&json, "region");
        else
            ttm_json_put_string(&json, "region", ttm_region_name(event->region));
        if (event->region == TTM_REGION_KERNEL)
            ttm_json_put_string(&json, "kind", ttm_kernel_kind_name(event->kind));
        ttm_json_put_u64(&json, "id", event->id);
        ttm_json_put_u64(&json, "address", event->address);
        ttm_json_put_u64(&json, "bytes", event->bytes);
        ttm_json_put_u64(&json, "footprint_bytes", event->footprint_bytes);
        ttm_json_put_u64(&json, "total_bytes", event->total_bytes);
    }
    if (origin)
        put_json_origin(&json, origin);
    ttm_json_object_end(&json);
    ttm_text_append(out, "\n");
}

/* As JSON where there is no style. */
static int take_frame(const struct ttm_frame *frame, const struct style *style,
                      struct ttm_tail_origins *known, struct ttm_text *out)
{
    struct ttm_event event;

    if (frame->type == TTM_FRAME_LOST && frame->length >= 8) {
        const uint64_t lost = get_le64(frame->payload);
        if (!style)
            ttm_text_format(out, "{\"event\":\"lost\",\"count\":%" PRIu64 "}\n", lost);
        else
            ttm_text_format(out, "%s %" PRIu64 " %s lost: this reader is too slow\n", style->odd,
                            lost, lost == 1 ? "line" : "lines");
    }
    if (frame->type == TTM_FRAME_ORIGIN)
        return ttm_tail_origins_add(known, frame->payload, frame->length);
    if (frame->type != TTM_FRAME_EVENTS)
        return 0;
    for (uint32_t at = 0; at < frame->length; at += TTM_EVENT_SIZE) {
        const int r = ttm_event_decode(frame->payload + at, frame->length - at, &event);
        if (r < 0)
            return r;
        const struct ttm_answer_origin *origin =
            ttm_tail_origins_find(known, event.pid, event.origin);
        if (!style)
            put_json(out, &event, origin);
        else
            put_line(out, style, &event, origin);
    }
    return 0;
}

/* Prints until the server goes; lines are written as soon as no more are at hand. */
static int follow(struct ttm_connection *conn, bool is_json)
{
    struct style style = choose_style();
    struct ttm_tail_origins known = {0};
    struct ttm_text out;
    int r = 0, written = 0;

    ttm_text_init(&out);
    style.names = is_json ? NULL : ttm_native_names_new(); /* NULL names nothing */
    while (r >= 0 && written == 0) {
        struct ttm_frame frame;
        r = ttm_connection_receive(conn, out.length > 0 ? 0 : -1, &frame);
        if (r > 0)
            r = take_frame(&frame, is_json ? NULL : &style, &known, &out);
        if ((r == 0 && out.length > 0) || out.length > 65536) {
            written = ttm_terminal_print(&out);
            ttm_text_clear(&out);
        }
    }
    if (written == 0 && out.length > 0)
        written = ttm_terminal_print(&out);
    ttm_text_done(&out);
    ttm_tail_origins_done(&known);
    ttm_native_names_free(style.names);
    if (written < 0)
        return ttm_ask_unwritten(written);
    return ttm_ask_failed(conn, r);
}

/* Nobody should wait for events that are not shown to them. */
static void say_what_is_shown(const struct ttm_connection *conn)
{
    struct stat st;

    if (geteuid() != 0 && stat(conn->path, &st) == 0 && st.st_uid != geteuid())
        ttm_log("this is another user's server: only your own programs' events are shown");
}

static int run(int argc, char **argv)
{
    struct ttm_events_request request = {.devices.is_all = true};
    uint8_t payload[TTM_EVENTS_REQUEST_SIZE];
    struct ttm_options parsed;
    struct ttm_connection conn;
    const char *socket_path = NULL;
    bool is_json = false;
    uint64_t number = 0;
    int id, r = 0;

    ttm_options_init(&parsed, &ttm_command_tail, argc, argv);
    while (r == 0 && (id = ttm_options_next(&parsed)) > 0) {
        if (id == 'd')
            r = ttm_options_devices(&parsed, &request.devices);
        else if (id == OPTION_PID)
            r = ttm_options_number(&parsed, "a process id", 1, INT32_MAX, &number);
        else if (id == 'j')
            is_json = true;
        else if (id == 's')
            socket_path = parsed.value;
    }
    if (r < 0 || id != TTM_OPTION_END)
        return r == 0 && id == TTM_OPTION_HELP ? TTM_EXIT_OK : TTM_EXIT_USAGE;
    request.pid = (int32_t)number;

    int status = ttm_ask_connect(socket_path, &conn);
    if (status == TTM_EXIT_OK) {
        say_what_is_shown(&conn);
        ttm_events_request_encode(&request, payload);
        r = ttm_connection_send(&conn, TTM_FRAME_SUBSCRIBE_EVENTS, payload, sizeof(payload));
        status = r < 0 ? ttm_ask_failed(&conn, r) : follow(&conn, is_json);
    }
    ttm_connection_close(&conn);
    return status;
}

const struct ttm_command ttm_command_tail = {
    .name = "tail",
    .synopsis = "[-d LIST] [--pid PID] [--json]",
    .summary = "Allocations and frees as they happen, one line each.",
    .details = "A reader that is too slow loses lines, which are counted, and slows nobody.",
    .options = options,
    .run = run,
};
