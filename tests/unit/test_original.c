/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include "wire/original.h"
#include "wire/region.h"

static const enum ttm_original_layout layouts[] = {TTM_ORIGINAL_V72, TTM_ORIGINAL_V112,
                                                   TTM_ORIGINAL_V144};

static const char *const type_names[] = {
    "alloc",
    "free",
    "query",
    "response",
    "dump_remaining",
    "device_info_query",
    "device_info_response",
    "cb_alloc",
    "cb_free",
    "kernel_load",
    "kernel_unload",
    "dump_kernels",
};

/* What came out of a reader, in order. */
struct sink {
    struct ttm_original_message messages[64];
    size_t count;
    int error;
};

static void drain(struct ttm_original_reader *reader, struct sink *sink)
{
    struct ttm_original_message msg;
    int r;

    while ((r = ttm_original_reader_next(reader, &msg)) > 0) {
        assert_true(sink->count < COUNT_OF(sink->messages));
        sink->messages[sink->count++] = msg;
    }
    sink->error = r;
}

/* One piece arrives, in memory that is gone afterwards. */
static void feed(struct ttm_original_reader *reader, const uint8_t *data, size_t length,
                 struct sink *sink)
{
    struct bytes piece = bytes_of(data, length);

    if (sink->error == 0) {
        ttm_original_reader_push(reader, piece.data, piece.length);
        drain(reader, sink);
        if (sink->error == 0)
            ttm_original_reader_keep(reader);
    }
    bytes_done(&piece);
}

static void hush(struct ttm_original_reader *reader, struct sink *sink)
{
    if (sink->error != 0)
        return;
    ttm_original_reader_silence(reader);
    drain(reader, sink);
    if (sink->error == 0)
        ttm_original_reader_keep(reader);
}

/* A client's messages: of each kind that clients send, with ids 1, 2, 3 … */
struct stream {
    uint8_t data[16 * TTM_ORIGINAL_SIZE_MAX];
    size_t length;
    enum ttm_original_layout layout;
    struct ttm_original_message messages[16];
    size_t count;
};

static struct ttm_original_message client_message(size_t n)
{
    static const uint8_t types[] = {
        TTM_ORIGINAL_ALLOC,          TTM_ORIGINAL_KERNEL_LOAD,  TTM_ORIGINAL_QUERY,
        TTM_ORIGINAL_FREE,           TTM_ORIGINAL_CB_ALLOC,     TTM_ORIGINAL_DEVICE_INFO_QUERY,
        TTM_ORIGINAL_CB_FREE,        TTM_ORIGINAL_DUMP_KERNELS, TTM_ORIGINAL_KERNEL_UNLOAD,
        TTM_ORIGINAL_DUMP_REMAINING,
    };
    const uint8_t type = types[n % COUNT_OF(types)];

    return (struct ttm_original_message){
        .type = type,
        .buffer_type = (uint8_t)(n % 5),
        .device_id = type == TTM_ORIGINAL_DEVICE_INFO_QUERY ? -1 : (int32_t)(n * 31 % 1024),
        .process_id = 4242,
        .size = 0x0101010101010101ull * (n + 1), /* looks like a type everywhere */
        .buffer_id = n + 1,
        .timestamp = 0x0c0b0a0908070605ull,
    };
}

static void add_message(struct stream *stream, const struct ttm_original_message *msg)
{
    stream->messages[stream->count++] = *msg;
    ttm_original_encode(msg, stream->layout, stream->data + stream->length);
    stream->length += stream->layout;
}

static struct stream client_stream(enum ttm_original_layout layout, size_t count, size_t first)
{
    struct stream stream = {.layout = layout};

    for (size_t i = 0; i < count; i++) {
        const struct ttm_original_message msg = client_message(first + i);
        add_message(&stream, &msg);
    }
    return stream;
}

static void assert_all_read(const struct sink *sink, const struct stream *stream,
                            const struct ttm_original_reader *reader)
{
    assert_int_equal(sink->error, 0);
    assert_int_equal(sink->count, stream->count);
    for (size_t i = 0; i < stream->count; i++)
        assert_memory_equal(&sink->messages[i], &stream->messages[i], sizeof(stream->messages[i]));
    assert_int_equal(reader->layout, stream->layout);
    assert_int_equal(ttm_original_reader_leftover(reader), 0);
    assert_false(ttm_original_reader_is_waiting(reader));
}

static void every_golden_message_is_decoded_and_encoded_again_the_same(void **state)
{
    (void)state;
    for (uint8_t type = 1; type <= 12; type++) {
        for (size_t l = 0; l < COUNT_OF(layouts); l++) {
            uint8_t buf[TTM_ORIGINAL_SIZE_MAX];
            char name[64];
            struct ttm_original_message msg;
            const bool is_wide = layouts[l] != TTM_ORIGINAL_V72;
            const bool has_cb = layouts[l] == TTM_ORIGINAL_V144;

            (void)snprintf(name, sizeof(name), "original_%s.v%d.bin", type_names[type - 1],
                           layouts[l]);
            struct bytes file = golden(name);
            assert_int_equal(file.length, layouts[l]);
            assert_int_equal(ttm_original_decode(file.data, layouts[l], &msg), 0);
            assert_int_equal(msg.type, type);
            assert_int_equal(msg.device_id, 100 + type);
            assert_true(msg.size == 0x1122334455660000ull + type);
            assert_int_equal(msg.buffer_type, type % 5);
            assert_int_equal(msg.process_id, 4242);
            assert_true(msg.buffer_id == 0xa1a2a3a4a5a60000ull + type);
            assert_true(msg.timestamp == 0xb1b2b3b4b5b60000ull + type);
            assert_true(msg.dram_allocated == 0xc0c1c2c3c4c50000ull);
            assert_true(msg.l1_allocated == 0xc0c1c2c3c4c50001ull);
            assert_true(msg.l1_small_allocated == 0xc0c1c2c3c4c50002ull);
            assert_true(msg.trace_allocated == 0xc0c1c2c3c4c50003ull);
            assert_true(msg.cb_allocated == (has_cb ? 0xd0d1d2d3d4d50000ull : 0));
            assert_true(msg.kernel_allocated == (has_cb ? 0xd0d1d2d3d4d50001ull : 0));
            assert_true(msg.total_dram_size == (is_wide ? 0xe0e1e2e3e4e50000ull : 0));
            assert_true(msg.total_l1_size == (is_wide ? 0xe0e1e2e3e4e50001ull : 0));
            assert_true(msg.arch_type == (is_wide ? 0xf0f10000u : 0));
            assert_true(msg.num_dram_channels == (is_wide ? 0xf0f10001u : 0));
            assert_true(msg.dram_size_per_channel == (is_wide ? 0xf0f10002u : 0));
            assert_true(msg.l1_size_per_core == (is_wide ? 0xf0f10003u : 0));
            assert_true(msg.is_available == (is_wide ? 0xf0f10004u : 0));
            assert_true(msg.num_devices == (is_wide ? 0xf0f10005u : 0));

            memset(buf, 0xff, sizeof(buf));
            ttm_original_encode(&msg, layouts[l], buf);
            assert_bytes_equal(&file, buf, layouts[l]);
            bytes_done(&file);
        }
    }
}

static void a_type_that_is_none_of_the_twelve_is_refused(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        uint8_t buf[TTM_ORIGINAL_SIZE_MAX] = {(uint8_t)type};
        struct ttm_original_message msg;
        for (size_t l = 0; l < COUNT_OF(layouts); l++)
            assert_int_equal(ttm_original_decode(buf, layouts[l], &msg),
                             type >= 1 && type <= 12 ? 0 : -EBADMSG);
    }
}

static void a_stream_in_one_piece_is_read_whole_without_silence(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        for (size_t count = 2; count <= 12; count++) {
            const struct stream stream = client_stream(layouts[l], count, 0);
            struct ttm_original_reader reader;
            struct sink sink = {0};
            ttm_original_reader_init(&reader);
            feed(&reader, stream.data, stream.length, &sink);
            assert_all_read(&sink, &stream, &reader);
        }
    }
}

static void a_stream_split_at_every_pair_of_bytes_is_read_whole(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        const struct stream stream = client_stream(layouts[l], 3, l);
        for (size_t a = 0; a <= stream.length; a++) {
            for (size_t b = a; b <= stream.length; b += 1 + (b - a) % 3) {
                struct ttm_original_reader reader;
                struct sink sink = {0};
                ttm_original_reader_init(&reader);
                feed(&reader, stream.data, a, &sink);
                feed(&reader, stream.data + a, b - a, &sink);
                feed(&reader, stream.data + b, stream.length - b, &sink);
                assert_all_read(&sink, &stream, &reader);
            }
        }
    }
}

static void a_stream_that_comes_byte_by_byte_is_read_whole(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        for (size_t first = 0; first < 10; first++) {
            const struct stream stream = client_stream(layouts[l], 6, first);
            struct ttm_original_reader reader;
            struct sink sink = {0};
            ttm_original_reader_init(&reader);
            for (size_t i = 0; i < stream.length; i++)
                feed(&reader, stream.data + i, 1, &sink);
            assert_all_read(&sink, &stream, &reader);
        }
    }
}

static void a_lone_first_message_comes_out_once_it_cannot_be_another(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        for (size_t first = 0; first < 10; first++) { /* every kind, queries among them */
            const struct stream stream = client_stream(layouts[l], 1, first);
            struct ttm_original_reader reader;
            struct sink sink = {0};
            ttm_original_reader_init(&reader);
            feed(&reader, stream.data, stream.length, &sink);
            /* 72 bytes may be the start of 112, 112 of 144; nothing is longer than 144. */
            const bool is_certain = layouts[l] == TTM_ORIGINAL_V144;
            assert_int_equal(sink.count, is_certain ? 1 : 0);
            assert_int_equal(ttm_original_reader_is_waiting(&reader), !is_certain);
            hush(&reader, &sink);
            assert_all_read(&sink, &stream, &reader);
        }
    }
}

static void silence_anywhere_in_a_stream_loses_and_doubles_nothing(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        const struct stream stream = client_stream(layouts[l], 4, l + 2);
        for (size_t a = 0; a <= stream.length; a++) {
            for (size_t b = a; b <= stream.length; b += 1 + (b - a) % 5) {
                struct ttm_original_reader reader;
                struct sink sink = {0};
                ttm_original_reader_init(&reader);
                feed(&reader, stream.data, a, &sink);
                hush(&reader, &sink);
                feed(&reader, stream.data + a, b - a, &sink);
                hush(&reader, &sink);
                feed(&reader, stream.data + b, stream.length - b, &sink);
                assert_all_read(&sink, &stream, &reader);
            }
        }
    }
}

static void silence_after_every_byte_loses_and_doubles_nothing(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        const struct stream stream = client_stream(layouts[l], 5, 0);
        struct ttm_original_reader reader;
        struct sink sink = {0};
        ttm_original_reader_init(&reader);
        for (size_t i = 0; i < stream.length; i++) {
            feed(&reader, stream.data + i, 1, &sink);
            hush(&reader, &sink);
        }
        assert_all_read(&sink, &stream, &reader);
    }
}

static void a_message_taken_too_short_widens_step_by_step(void **state)
{
    const struct stream stream = client_stream(TTM_ORIGINAL_V144, 3, 0);
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    ttm_original_reader_init(&reader);
    feed(&reader, stream.data, 72, &sink);
    hush(&reader, &sink);
    assert_int_equal(sink.count, 1);
    assert_int_equal(reader.layout, TTM_ORIGINAL_V72);
    feed(&reader, stream.data + 72, 1, &sink);
    assert_int_equal(reader.layout, TTM_ORIGINAL_V112);
    feed(&reader, stream.data + 73, 39, &sink);
    assert_int_equal(reader.layout, TTM_ORIGINAL_V112);
    feed(&reader, stream.data + 112, 1, &sink);
    assert_int_equal(reader.layout, TTM_ORIGINAL_V144);
    assert_int_equal(sink.count, 1);
    feed(&reader, stream.data + 113, stream.length - 113, &sink);
    assert_all_read(&sink, &stream, &reader);
}

static void a_layout_confirmed_by_a_second_message_widens_no_more(void **state)
{
    const struct stream stream = client_stream(TTM_ORIGINAL_V72, 2, 0);
    static const uint8_t zeros[40];
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    ttm_original_reader_init(&reader);
    feed(&reader, stream.data, 72, &sink);
    hush(&reader, &sink);
    feed(&reader, stream.data + 72, 72, &sink);
    assert_all_read(&sink, &stream, &reader);
    feed(&reader, zeros, sizeof(zeros), &sink);
    assert_int_equal(sink.error, -EBADMSG);
    assert_int_equal(sink.count, 2);
}

static void nothing_is_wider_than_144(void **state)
{
    const struct stream stream = client_stream(TTM_ORIGINAL_V144, 1, 0);
    static const uint8_t zeros[32];
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    ttm_original_reader_init(&reader);
    feed(&reader, stream.data, 112, &sink);
    hush(&reader, &sink);
    feed(&reader, stream.data + 112, 32, &sink);
    assert_int_equal(reader.layout, TTM_ORIGINAL_V144);
    feed(&reader, zeros, sizeof(zeros), &sink);
    assert_int_equal(sink.error, -EBADMSG);
    assert_int_equal(sink.count, 1);
}

/* A client that knows its device fills in what others leave zero. */
static struct stream telling_stream(enum ttm_original_layout layout)
{
    struct stream stream = {.layout = layout};

    for (size_t i = 0; i < 4; i++) {
        struct ttm_original_message msg = client_message(i);
        msg.total_dram_size = 12884901888;
        msg.total_l1_size = 107937792;
        msg.arch_type = TTM_ARCH_WORMHOLE_B0;
        msg.num_dram_channels = 12;
        msg.dram_size_per_channel = 1073741824;
        msg.l1_size_per_core = 1499136;
        msg.is_available = 1;
        msg.num_devices = 8;
        if (layout == TTM_ORIGINAL_V144) {
            msg.cb_allocated = 0x0504; /* its low byte would be a type */
            msg.kernel_allocated = 71680;
        }
        add_message(&stream, &msg);
    }
    return stream;
}

static void fields_behind_byte_72_may_be_filled_in(void **state)
{
    (void)state;
    for (size_t l = 1; l < COUNT_OF(layouts); l++) {
        const struct stream stream = telling_stream(layouts[l]);
        for (size_t a = 0; a <= stream.length; a++) {
            struct ttm_original_reader reader;
            struct sink sink = {0};
            ttm_original_reader_init(&reader);
            feed(&reader, stream.data, a, &sink);
            feed(&reader, stream.data + a, stream.length - a, &sink);
            assert_all_read(&sink, &stream, &reader);
        }
    }
}

/* A field that the server will refuse is no reason to lose the messages around it. */
static void a_refusable_message_among_good_ones_changes_no_layout(void **state)
{
    static const struct {
        int32_t device;
        uint8_t buffer_type;
    } bad[] = {{5000, 0}, {-2, 0}, {INT32_MIN, 1}, {0, 7}, {0, 200}, {1024, 255}};
    (void)state;

    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        for (size_t b = 0; b < COUNT_OF(bad); b++) {
            for (size_t at = 0; at < 4; at++) {
                struct stream stream = {.layout = layouts[l]};
                for (size_t i = 0; i < 6; i++) {
                    struct ttm_original_message msg = client_message(0);
                    msg.buffer_id = i;
                    if (i == at) {
                        msg.device_id = bad[b].device;
                        msg.buffer_type = bad[b].buffer_type;
                    }
                    add_message(&stream, &msg);
                }
                struct ttm_original_reader reader;
                struct sink sink = {0};
                ttm_original_reader_init(&reader);
                feed(&reader, stream.data, stream.length, &sink);
                assert_all_read(&sink, &stream, &reader);
            }
        }
    }
}

static void garbage_is_refused_at_its_first_byte(void **state)
{
    static const uint8_t none[] = {0, 13, 'Q', 0x7f, 0xff};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(none); i++) {
        struct ttm_original_reader reader;
        struct sink sink = {0};
        ttm_original_reader_init(&reader);
        feed(&reader, &none[i], 1, &sink);
        assert_int_equal(sink.error, -EBADMSG);
        assert_int_equal(sink.count, 0);
    }
}

static void garbage_behind_messages_is_refused_after_them(void **state)
{
    static const uint8_t garbage[] = {0x99};
    (void)state;

    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        const struct stream stream = client_stream(layouts[l], 3, 0);
        struct ttm_original_reader reader;
        struct sink sink = {0};
        ttm_original_reader_init(&reader);
        feed(&reader, stream.data, stream.length, &sink);
        assert_int_equal(sink.count, 3);
        feed(&reader, garbage, sizeof(garbage), &sink);
        assert_int_equal(sink.error, -EBADMSG);
        assert_int_equal(sink.count, 3);
    }
}

static void a_stream_that_fits_no_layout_is_refused(void **state)
{
    uint8_t data[200] = {TTM_ORIGINAL_ALLOC};
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    memset(data + 40, 0xee, sizeof(data) - 40);
    ttm_original_reader_init(&reader);
    feed(&reader, data, sizeof(data), &sink);
    assert_int_equal(sink.error, -EBADMSG);
    assert_int_equal(sink.count, 0);
}

static void the_end_in_mid_message_keeps_every_whole_one_before_it(void **state)
{
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++) {
        const struct stream stream = client_stream(layouts[l], 3, 0);
        for (size_t n = 1; n < stream.length; n++) {
            struct ttm_original_reader reader;
            struct sink sink = {0};
            ttm_original_reader_init(&reader);
            feed(&reader, stream.data, n, &sink);
            hush(&reader, &sink);
            assert_int_equal(sink.error, 0);
            /* Up to the second message, 72 and 112 bytes alone pass for a whole message. */
            size_t whole = n / layouts[l];
            size_t torn = n % layouts[l];
            if (whole == 0 && (n == 72 || n == 112)) {
                whole = 1;
                torn = 0;
            }
            assert_int_equal(sink.count, whole);
            assert_int_equal(ttm_original_reader_leftover(&reader), torn);
            for (size_t i = 0; i < whole; i++)
                assert_int_equal(sink.messages[i].buffer_id, i + 1);
        }
    }
}

static void silence_is_harmless_where_there_is_no_doubt(void **state)
{
    const struct stream stream = client_stream(TTM_ORIGINAL_V112, 3, 0);
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    ttm_original_reader_init(&reader);
    assert_false(ttm_original_reader_is_waiting(&reader));
    hush(&reader, &sink);
    assert_int_equal(sink.count, 0);
    feed(&reader, stream.data, 2 * 112 + 72, &sink);
    assert_int_equal(sink.count, 2);
    assert_false(ttm_original_reader_is_waiting(&reader));
    hush(&reader, &sink);
    assert_int_equal(sink.count, 2);
    feed(&reader, stream.data + 2 * 112 + 72, 40, &sink);
    assert_all_read(&sink, &stream, &reader);
}

static void an_empty_piece_changes_nothing(void **state)
{
    const struct stream stream = client_stream(TTM_ORIGINAL_V72, 2, 0);
    struct ttm_original_reader reader;
    struct sink sink = {0};
    (void)state;

    ttm_original_reader_init(&reader);
    feed(&reader, NULL, 0, &sink);
    feed(&reader, stream.data, 30, &sink);
    feed(&reader, NULL, 0, &sink);
    feed(&reader, stream.data + 30, stream.length - 30, &sink);
    feed(&reader, NULL, 0, &sink);
    assert_all_read(&sink, &stream, &reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_golden_message_is_decoded_and_encoded_again_the_same),
        cmocka_unit_test(a_type_that_is_none_of_the_twelve_is_refused),
        cmocka_unit_test(a_stream_in_one_piece_is_read_whole_without_silence),
        cmocka_unit_test(a_stream_split_at_every_pair_of_bytes_is_read_whole),
        cmocka_unit_test(a_stream_that_comes_byte_by_byte_is_read_whole),
        cmocka_unit_test(a_lone_first_message_comes_out_once_it_cannot_be_another),
        cmocka_unit_test(silence_anywhere_in_a_stream_loses_and_doubles_nothing),
        cmocka_unit_test(silence_after_every_byte_loses_and_doubles_nothing),
        cmocka_unit_test(a_message_taken_too_short_widens_step_by_step),
        cmocka_unit_test(a_layout_confirmed_by_a_second_message_widens_no_more),
        cmocka_unit_test(nothing_is_wider_than_144),
        cmocka_unit_test(fields_behind_byte_72_may_be_filled_in),
        cmocka_unit_test(a_refusable_message_among_good_ones_changes_no_layout),
        cmocka_unit_test(garbage_is_refused_at_its_first_byte),
        cmocka_unit_test(garbage_behind_messages_is_refused_after_them),
        cmocka_unit_test(a_stream_that_fits_no_layout_is_refused),
        cmocka_unit_test(the_end_in_mid_message_keeps_every_whole_one_before_it),
        cmocka_unit_test(silence_is_harmless_where_there_is_no_doubt),
        cmocka_unit_test(an_empty_piece_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
