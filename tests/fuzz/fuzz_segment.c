/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a segment whose owner lies, and what its notes mean to the model.
 * A good segment lies there from the start: its first 4096 bytes have the header,
 * three rings and notes; behind them there is room for a header of today's size. An
 * input is a program that writes over it and reads from it, each instruction an
 * operation and its operands.
 *
 *   0 write   u16 offset | u8 length | bytes
 *   1 open    again, from the beginning
 *   2 read    u8 how many records at most
 *   3 note    u16 number - 1000 | u8 kind | u8 room
 *   4 sleep
 *   5 mark
 *   6 state   u16 device: what the header says of it and of the process
 *   7 mean    u8 which | u16 number - 1000: what a note means to the model
 *   8 moved   the rings lie behind a header of today's size
 */
#include "fuzzing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/snapshot.h"
#include "ring/reader.h"
#include "server/notes.h"

#define NEAR_BYTES 4096u
#define BYTES (NEAR_BYTES + 2 * sizeof(struct ttm_segment))
#define HEADER TTM_SEGMENT_HEADER_LEAST
#define RINGS 3u
#define SLOTS 4u
#define STRIDE (sizeof(struct ttm_ring) + SLOTS * sizeof(struct ttm_record))

struct machine {
    const uint8_t *program;
    size_t left;
    int fd;
    uint8_t *memory; /* as the lying process sees it */
    struct ttm_ring_reader reader;
    bool is_open;
    struct ttm_registry *reg;
    struct ttm_process *process;
    struct ttm_notes notes;
};

static void take(struct machine *m, void *ret, size_t size)
{
    const size_t n = size < m->left ? size : m->left;

    memset(ret, 0, size);
    memcpy(ret, m->program, n);
    m->program += n;
    m->left -= n;
}

static uint8_t take_u8(struct machine *m)
{
    uint8_t value;

    take(m, &value, sizeof(value));
    return value;
}

static uint16_t take_u16(struct machine *m)
{
    uint16_t value;

    take(m, &value, sizeof(value));
    return value;
}

static void make_segment(struct machine *m)
{
    m->fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MUST(m->fd >= 0);
    MUST(ftruncate(m->fd, BYTES) == 0);
    MUST(fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    m->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    MUST(m->memory != MAP_FAILED);

    struct ttm_segment *segment = (struct ttm_segment *)m->memory;
    segment->magic = TTM_SEGMENT_MAGIC;
    segment->version = TTM_SEGMENT_VERSION;
    segment->header_bytes = HEADER;
    segment->segment_bytes = BYTES;
    segment->ring_count = RINGS;
    segment->ring_slots = SLOTS;
    segment->ring_stride = STRIDE;
    segment->notes_offset = HEADER + RINGS * STRIDE;
    segment->notes_bytes = NEAR_BYTES - segment->notes_offset;
    atomic_init(&segment->rings_used, RINGS);
}

/* What the header said is kept only if all of it lies within the file. */
static void check_bounds(const struct ttm_ring_reader *reader)
{
    /* Nothing here can overflow: each number is below the file's size before it is used. */
    MUST(reader->bytes == BYTES);
    MUST(reader->rings_offset >= HEADER && reader->rings_offset < BYTES);
    MUST(reader->rings_offset % 64 == 0 && reader->ring_stride % 64 == 0);
    MUST(reader->ring_slots > 0 && reader->ring_slots <= BYTES / sizeof(struct ttm_record));
    MUST(reader->ring_stride <= BYTES && reader->ring_stride >= sizeof(struct ttm_ring));
    MUST(reader->ring_slots * sizeof(struct ttm_record) <=
         reader->ring_stride - sizeof(struct ttm_ring));
    MUST(reader->ring_count > 0 && reader->ring_count <= BYTES / reader->ring_stride);
    MUST(reader->notes_offset <= BYTES && reader->notes_offset % 8 == 0);
    MUST(reader->rings_offset + reader->ring_count * reader->ring_stride <= reader->notes_offset);
    MUST(reader->notes_bytes <= BYTES - reader->notes_offset);
}

static void open_reader(struct machine *m)
{
    if (m->is_open)
        ttm_ring_reader_close(&m->reader);
    const int r = ttm_ring_reader_open(m->fd, &m->reader);
    MUST(r == 0 || r == -EBADMSG);
    m->is_open = r == 0;
    if (m->is_open)
        check_bounds(&m->reader);
}

/* Reads, and looks whether the bytes are those of a ring. Returns how many. */
static uint32_t read_records(struct machine *m, uint32_t max)
{
    struct ttm_record *records = malloc(max > 0 ? max * sizeof(records[0]) : 1);
    uint64_t passed = 0;

    MUST(records);
    const uint32_t n = ttm_ring_reader_read(&m->reader, records, max, &passed);
    MUST(n <= max && n <= m->reader.ring_slots);
    MUST(passed <= 1);
    if (n > 0) {
        const uint32_t ring = m->reader.at_ring - 1;
        const uint64_t at = m->reader.rings_offset + ring * m->reader.ring_stride;
        const uint64_t first = m->reader.heads[ring] - n;
        MUST(ring < m->reader.ring_count);
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t slot = (first + i) % m->reader.ring_slots;
            const uint8_t *expected = m->memory + at + sizeof(struct ttm_ring) + slot * 64;
            MUST(expected + 64 <= m->memory + BYTES);
            MUST(memcmp(&records[i], expected, 64) == 0);
        }
    }
    free(records);
    return n;
}

static void read_note(struct machine *m)
{
    const uint32_t number = 1000u + take_u16(m);
    const uint32_t kind = take_u8(m);
    const uint32_t room = take_u8(m);
    uint8_t *note = malloc(room > 0 ? room : 1);

    MUST(note);
    const long n = ttm_ring_reader_note(&m->reader, number, kind, note, room);
    MUST(n == -ENOENT || n == -EMSGSIZE || (n >= 0 && n <= room));
    if (n > 0) {
        const uint64_t at = m->reader.notes_offset + (number - TTM_NOTE_FIRST) * 8ull + 8;
        MUST(at + (uint64_t)n <= m->reader.notes_offset + m->reader.notes_bytes);
        MUST(memcmp(note, m->memory + at, (size_t)n) == 0);
    }
    free(note);
}

static void write_over(struct machine *m)
{
    const size_t at = take_u16(m) % NEAR_BYTES;
    const size_t length = take_u8(m);

    take(m, m->memory + at, length < BYTES - at ? length : BYTES - at);
}

/* The rings lie behind a header of today's size, so that it is believed as a whole. */
static void move_rings(struct machine *m)
{
    struct ttm_segment *segment = (struct ttm_segment *)m->memory;

    segment->header_bytes = sizeof(*segment);
    segment->notes_offset = sizeof(*segment) + RINGS * STRIDE;
    segment->notes_bytes = NEAR_BYTES;
    /* The notes that were written near the start are there too. */
    memcpy(m->memory + segment->notes_offset, m->memory + HEADER + RINGS * STRIDE,
           NEAR_BYTES - HEADER - RINGS * STRIDE);
}

static void read_states(struct machine *m)
{
    const uint32_t id = take_u16(m);
    struct ttm_device_state device;
    struct ttm_process_state process;

    ttm_ring_reader_device(&m->reader, id, &device);
    MUST(device.program_count <= TTM_SEGMENT_PROGRAMS);
    ttm_ring_reader_process(&m->reader, &process);
    if (m->reader.rings_offset < sizeof(struct ttm_segment))
        MUST(device.note == 0 && device.dispatched == 0 && process.untracked == 0 &&
             process.unknown_ends == 0 && process.runtime_note == 0);
    MUST(ttm_ring_reader_fill(&m->reader) <= 1000);
}

/* What a number stands for, by the word of the process. */
static void mean(struct machine *m)
{
    const unsigned which = take_u8(m) % 5;
    const uint32_t number = 1000u + take_u16(m);
    char text[TTM_STRING_MAX + 1];
    uint32_t set;

    if (which == 0 && ttm_notes_device_set(&m->notes, number, &set) == 0) {
        const struct ttm_device_set devices = ttm_device_sets_get(&m->reg->sets, set);
        MUST(devices.count > 0);
        for (uint16_t i = 0; i < devices.count; i++)
            MUST(devices.devices[i] < TTM_DEVICE_COUNT);
    } else if (which == 1) {
        const int cores = ttm_notes_cores(&m->notes, number);
        MUST(cores < 0 || m->process->cbs.core_sets[cores].count > 0);
    } else if (which == 2) {
        const uint32_t origin = ttm_notes_origin(&m->notes, number);
        MUST(origin == 0 || ttm_origin_table_find(&m->process->origins, origin));
    } else if (which == 3) {
        ttm_notes_text(&m->notes, number, text);
        MUST(strlen(text) <= TTM_STRING_MAX);
    } else {
        ttm_notes_device(&m->notes, number);
    }
}

static void use_reader(struct machine *m, unsigned operation)
{
    if (operation == 6) {
        read_states(m);
    } else if (operation == 7) {
        mean(m);
    } else if (operation == 2) {
        (void)read_records(m, take_u8(m));
    } else if (operation == 3) {
        read_note(m);
    } else if (operation == 4) {
        (void)ttm_ring_reader_sleep(&m->reader);
        (void)ttm_ring_reader_lost(&m->reader);
        ttm_ring_reader_wake(&m->reader);
    } else {
        ttm_ring_reader_mark(&m->reader);
        (void)ttm_ring_reader_is_past_mark(&m->reader);
    }
}

static void step(struct machine *m)
{
    const unsigned operation = take_u8(m) % 9;

    if (operation == 0)
        write_over(m);
    else if (operation == 8)
        move_rings(m);
    else if (operation == 1)
        open_reader(m);
    else if (m->is_open)
        use_reader(m, operation);
}

/* Nobody writes any more: each ring is read in a bounded number of turns. */
static void drain(struct machine *m)
{
    uint64_t turns = 0;

    ttm_ring_reader_mark(&m->reader);
    while (read_records(m, 3) > 0)
        MUST(++turns <= (uint64_t)m->reader.ring_count * m->reader.ring_slots);
    MUST(ttm_ring_reader_sleep(&m->reader));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct machine m = {.program = data, .left = size};
    const struct ttm_process_info info = {.pid = 1};

    make_segment(&m);
    m.reg = ttm_registry_new(1);
    MUST(m.reg && ttm_registry_add_process(m.reg, &info, &m.process) == 0);
    /* As much of a server as notes look at: the registry, and that nothing is recorded. */
    static struct ttm_server server;
    server.reg = m.reg;
    struct ttm_client client = {.server = &server, .process = m.process};
    ttm_notes_init(&m.notes, &m.reader, &client);
    while (m.left > 0)
        step(&m);
    if (!m.is_open)
        open_reader(&m);
    if (m.is_open) {
        drain(&m);
        ttm_ring_reader_close(&m.reader);
    }
    ttm_notes_done(&m.notes);
    MUST(ttm_registry_check(m.reg) == 0);
    ttm_registry_free(m.reg);
    MUST(munmap(m.memory, BYTES) == 0);
    MUST(close(m.fd) == 0);
    return 0;
}
