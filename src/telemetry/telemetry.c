/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object is shared by its owner and the threads, and goes with the last of them:
 * a thread may hang in a read for as long as a reset takes, and its owner does not
 * wait for it.
 */
#include "telemetry/telemetry.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "base/turn.h"

#define STALL_NS TTM_NS_PER_S
#define WHOLE_NS                                                                                   \
    (10 * TTM_NS_PER_S)      /* so often a chip is read whole; in between there are glances */
#define GLANCE_PLACES 2      /* chips are not glanced at all at once, but in so many parts */
#define WHOLE_PLACES 10      /* nor read whole */
#define COUNT_PLACES 10      /* nor have the counters of their links read */
#define LIST_NS TTM_NS_PER_S /* so often it is looked whether there are others */
#define KEPT_CHIPS_MAX 64    /* with more, files are not kept open: there may be 1024 */
#define PCI_VENDOR 0x1e52

struct slot {
    struct ttm_telemetry *owner;
    unsigned number; /* the driver's, as it was last listed */
    unsigned place;  /* among all chips, by when they were found */
    bool has_thread;
    bool has_reading;
    uint64_t begun_ns; /* of the read that is under way; 0: none is */
    uint64_t read_ns;  /* when the last reading was complete */
    uint64_t next_ns;  /* when to read again; 0: it was not read yet */
    uint64_t whole_due_ns;
    uint64_t counted_ns; /* when the counters of the link were read */
    uint64_t count_due_ns;
    struct ttm_chip chip;
    struct ttm_heartbeat heartbeat;
    enum ttm_heartbeat_state heartbeat_state;
    struct ttm_value bytes_in_per_s, bytes_out_per_s;
};

struct ttm_telemetry {
    char *root;
    unsigned interval_ms;

    pthread_mutex_t lock;   /* guards all below; never held during a read */
    pthread_cond_t changed; /* a reading is complete: for ttm_telemetry_wait() */
    pthread_cond_t ending;  /* for threads that wait until it is time to read again */
    unsigned users;         /* the owner and the threads */
    uint64_t listed_ns;     /* when chips were listed last */
    bool is_ending;
    char driver[TTM_CHIP_NAME_SIZE];
    struct slot *slots[TTM_TELEMETRY_CHIPS_MAX];
    size_t slot_count;
};

/* With the lock held; gives it back. */
static void leave(struct ttm_telemetry *t)
{
    const bool is_last = --t->users == 0;

    (void)pthread_mutex_unlock(&t->lock);
    if (!is_last)
        return;
    for (size_t i = 0; i < t->slot_count; i++)
        free(t->slots[i]);
    (void)pthread_cond_destroy(&t->changed);
    (void)pthread_cond_destroy(&t->ending);
    (void)pthread_mutex_destroy(&t->lock);
    free(t->root);
    free(t);
}

/* Returns false when the time is up. */
static bool wait_until(struct ttm_telemetry *t, pthread_cond_t *condition, uint64_t until_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(until_ns / TTM_NS_PER_S),
        .tv_nsec = (long)(until_ns % TTM_NS_PER_S),
    };

    return pthread_cond_timedwait(condition, &t->lock, &until) != ETIMEDOUT;
}

static void take_traffic(struct slot *slot, const struct ttm_chip *chip, uint64_t now_ns)
{
    const struct ttm_link_counters *before = &slot->chip.counters;
    const uint64_t elapsed_ns = slot->has_reading ? now_ns - slot->counted_ns : 0;

    slot->bytes_in_per_s = ttm_link_rate(before, chip, elapsed_ns, TTM_INTO_CHIP);
    slot->bytes_out_per_s = ttm_link_rate(before, chip, elapsed_ns, TTM_OUT_OF_CHIP);
    slot->counted_ns = now_ns;
}

static void take_reading(struct slot *slot, const struct ttm_chip *chip, bool is_counted)
{
    const uint64_t now_ns = ttm_clock_monotonic_ns();

    if (is_counted)
        take_traffic(slot, chip, now_ns);
    slot->heartbeat_state =
        ttm_heartbeat_take(&slot->heartbeat, chip->sensors[TTM_SENSOR_HEARTBEAT], now_ns);
    slot->chip = *chip;
    slot->has_reading = true;
    slot->read_ns = now_ns;
    slot->begun_ns = 0;
}

/* What to read of a chip, and what was. */
struct reading {
    bool is_whole;
    bool is_counted; /* the counters of the link are read */
};

/* Without the lock. */
static struct reading read_chip(const char *root, struct ttm_chip_files *files,
                                struct reading wanted, struct ttm_chip *chip)
{
    if (!wanted.is_whole && ttm_chip_glance(files, root, chip)) {
        if (wanted.is_counted)
            ttm_chip_count(files, chip);
        return wanted;
    }
    ttm_chip_read(root, chip);
    ttm_chip_files_close(files);
    return (struct reading){.is_whole = true, .is_counted = true};
}

/* How often to read the counters of its link: before one of them can have wrapped twice. */
static uint64_t count_interval(const struct ttm_chip *chip)
{
    const uint64_t most_ns = ttm_link_unambiguous_ns(chip) / 10 * 8; /* a turn may come late */

    return most_ns > 0 && most_ns < WHOLE_NS ? most_ns : WHOLE_NS;
}

/* When it is this chip's turn again, after the reading that began then. */
static void plan(struct slot *slot, uint64_t begun_ns)
{
    const uint64_t interval_ns = slot->owner->interval_ms * TTM_NS_PER_MS;
    const uint64_t count_ns = count_interval(&slot->chip);
    const uint64_t now_ns = ttm_clock_monotonic_ns();

    if (slot->next_ns == 0) {
        slot->next_ns = ttm_turn_first(begun_ns, interval_ns, slot->place, GLANCE_PLACES);
        slot->whole_due_ns = ttm_turn_first(begun_ns, WHOLE_NS, slot->place, WHOLE_PLACES);
        slot->count_due_ns = ttm_turn_first(begun_ns, count_ns, slot->place, COUNT_PLACES);
    }
    if (slot->next_ns <= now_ns)
        slot->next_ns = ttm_turn_next(slot->next_ns, interval_ns, now_ns);
    if (slot->whole_due_ns <= begun_ns)
        slot->whole_due_ns = ttm_turn_next(slot->whole_due_ns, WHOLE_NS, begun_ns);
    if (slot->count_due_ns <= begun_ns)
        slot->count_due_ns = ttm_turn_next(slot->count_due_ns, count_ns, begun_ns);
}

static void *read_on(void *argument)
{
    struct slot *slot = argument;
    struct ttm_telemetry *t = slot->owner;
    struct ttm_chip_files files = TTM_CHIP_FILES_NONE;

    (void)pthread_mutex_lock(&t->lock);
    while (!t->is_ending) {
        struct ttm_chip chip = slot->chip;
        chip.number = slot->number;
        const uint64_t begun_ns = ttm_clock_monotonic_ns();
        const struct reading wanted = {
            .is_whole = !slot->has_reading || begun_ns >= slot->whole_due_ns,
            .is_counted = begun_ns >= slot->count_due_ns,
        };
        const bool is_kept = t->interval_ms > 0 && t->slot_count <= KEPT_CHIPS_MAX;
        slot->begun_ns = begun_ns;
        (void)pthread_mutex_unlock(&t->lock);
        const struct reading done = read_chip(t->root, &files, wanted, &chip);
        if (done.is_whole && is_kept)
            ttm_chip_files_open(&files, t->root, &chip);
        (void)pthread_mutex_lock(&t->lock);
        take_reading(slot, &chip, done.is_counted);
        (void)pthread_cond_broadcast(&t->changed);
        if (t->interval_ms == 0)
            break;
        plan(slot, begun_ns);
        while (!t->is_ending && wait_until(t, &t->ending, slot->next_ns)) {
        }
    }
    ttm_chip_files_close(&files);
    leave(t);
    return NULL;
}

/* With the lock held. Without a thread the chip is listed and not read; the next look retries. */
static void start_thread(struct ttm_telemetry *t, struct slot *slot)
{
    pthread_attr_t detached;
    pthread_t thread;

    if (pthread_attr_init(&detached) != 0)
        return;
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    slot->has_thread = ttm_quiet_thread_start(&thread, &detached, read_on, slot) == 0;
    (void)pthread_attr_destroy(&detached);
    if (slot->has_thread)
        t->users++;
}

static struct slot *find_slot(struct ttm_telemetry *t, const char *bdf, unsigned number)
{
    for (size_t i = 0; i < t->slot_count; i++) {
        struct slot *slot = t->slots[i];
        if (strcmp(slot->chip.bdf, bdf) == 0 && (bdf[0] || slot->number == number))
            return slot;
    }
    return NULL;
}

static int list_chip(struct ttm_telemetry *t, const char *bdf, unsigned number)
{
    struct slot *slot = find_slot(t, bdf, number);

    if (!slot) {
        if (t->slot_count == TTM_TELEMETRY_CHIPS_MAX)
            return 0;
        slot = calloc(1, sizeof(*slot));
        if (!slot)
            return -ENOMEM;
        slot->owner = t;
        slot->place = (unsigned)t->slot_count;
        ttm_chip_init(t->root, &slot->chip, bdf, number);
        t->slots[t->slot_count++] = slot;
    }
    slot->number = number; /* a card that comes back may get another */
    if (!slot->has_thread)
        start_thread(t, slot);
    return 0;
}

/* "tenstorrent!3". Returns -1 for what is none. */
static int parse_class_name(const char *name)
{
    static const char head[] = "tenstorrent!";
    const char *digits = name + sizeof(head) - 1;

    if (strncmp(name, head, sizeof(head) - 1) != 0 || !isdigit((unsigned char)digits[0]) ||
        strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 6)
        return -1;
    return (int)strtol(digits, NULL, 10);
}

/* With the lock held. These folders are the kernel's own; nothing here asks the driver. */
static int list_chips(struct ttm_telemetry *t)
{
    char bdf[TTM_CHIP_NAME_SIZE], path[sizeof(((struct dirent *)0)->d_name) + sizeof("/device")];
    const struct dirent *entry;
    int r = 0;
    const int fd = ttm_folder_open(t->root, "/sys/class/tenstorrent");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }
    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while (r == 0 && (entry = readdir(dir)) != NULL) {
        const int number = parse_class_name(entry->d_name);
        if (number < 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/device", entry->d_name);
        ttm_attribute_link(fd, path, bdf, sizeof(bdf));
        r = list_chip(t, bdf, (unsigned)number);
    }
    (void)closedir(dir);
    return r;
}

static void read_driver(const char *root, char ret[TTM_CHIP_NAME_SIZE])
{
    const int fd = ttm_folder_open(root, "/sys/module/tenstorrent");

    ret[0] = '\0';
    if (fd < 0)
        return;
    (void)ttm_attribute_text(fd, "version", ret, TTM_CHIP_NAME_SIZE);
    (void)close(fd);
}

static int init_waiting(struct ttm_telemetry *t)
{
    pthread_condattr_t attributes;

    if (pthread_condattr_init(&attributes) != 0)
        return -ENOMEM;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const int r = pthread_cond_init(&t->changed, &attributes) == 0 &&
                          pthread_cond_init(&t->ending, &attributes) == 0 &&
                          pthread_mutex_init(&t->lock, NULL) == 0
                      ? 0
                      : -ENOMEM;
    (void)pthread_condattr_destroy(&attributes);
    return r;
}

int ttm_telemetry_new(const char *root, unsigned interval_ms, struct ttm_telemetry **ret)
{
    struct ttm_telemetry *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    t->root = strdup(root);
    t->interval_ms = interval_ms;
    t->users = 1;
    if (!t->root || init_waiting(t) < 0) {
        free(t->root);
        free(t);
        return -ENOMEM;
    }
    read_driver(root, t->driver);
    (void)pthread_mutex_lock(&t->lock);
    const int r = list_chips(t);
    t->listed_ns = ttm_clock_monotonic_ns();
    (void)pthread_mutex_unlock(&t->lock);
    if (r < 0) {
        ttm_telemetry_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void ttm_telemetry_free(struct ttm_telemetry *telemetry)
{
    if (!telemetry)
        return;
    (void)pthread_mutex_lock(&telemetry->lock);
    telemetry->is_ending = true;
    (void)pthread_cond_broadcast(&telemetry->ending);
    leave(telemetry);
}

static bool is_all_read(const struct ttm_telemetry *t)
{
    for (size_t i = 0; i < t->slot_count; i++) {
        if (!t->slots[i]->has_reading)
            return false;
    }
    return true;
}

bool ttm_telemetry_wait(struct ttm_telemetry *telemetry, unsigned timeout_ms)
{
    const uint64_t until_ns = ttm_clock_monotonic_ns() + timeout_ms * TTM_NS_PER_MS;
    bool is_read;

    (void)pthread_mutex_lock(&telemetry->lock);
    while (!(is_read = is_all_read(telemetry)) &&
           wait_until(telemetry, &telemetry->changed, until_ns)) {
    }
    (void)pthread_mutex_unlock(&telemetry->lock);
    return is_read;
}

static int compare_bdf(const void *a, const void *b)
{
    return strcmp(((const struct ttm_telemetry_chip *)a)->chip.bdf,
                  ((const struct ttm_telemetry_chip *)b)->chip.bdf);
}

static int compare_number(const void *a, const void *b)
{
    const unsigned x = ((const struct ttm_telemetry_chip *)a)->chip.number;
    const unsigned y = ((const struct ttm_telemetry_chip *)b)->chip.number;

    return x < y ? -1 : x > y;
}

static void copy_slot(const struct slot *slot, uint64_t now_ns, struct ttm_telemetry_chip *ret)
{
    *ret = (struct ttm_telemetry_chip){
        .chip = slot->chip,
        .metal_id = -1,
        .has_reading = slot->has_reading,
        .is_stalled = slot->begun_ns != 0 && now_ns - slot->begun_ns > STALL_NS,
        .age_ns = slot->has_reading && now_ns > slot->read_ns ? now_ns - slot->read_ns : 0,
        .heartbeat = slot->heartbeat_state,
        .bytes_in_per_s = slot->bytes_in_per_s,
        .bytes_out_per_s = slot->bytes_out_per_s,
    };
    ret->chip.number = slot->number;
}

static void sort_view(struct ttm_telemetry_view *view)
{
    int next_id = 0;

    if (!view->chips)
        return;
    qsort(view->chips, view->count, sizeof(view->chips[0]), compare_bdf);
    for (size_t i = 0; i < view->count; i++) {
        if (view->chips[i].chip.state != TTM_CHIP_REMOVED)
            view->chips[i].metal_id = next_id++;
    }
    qsort(view->chips, view->count, sizeof(view->chips[0]), compare_number);
}

int ttm_telemetry_look(struct ttm_telemetry *telemetry, struct ttm_telemetry_view *ret)
{
    *ret = (struct ttm_telemetry_view){0};
    (void)pthread_mutex_lock(&telemetry->lock);
    const uint64_t now_ns = ttm_clock_monotonic_ns();
    int r = 0;
    if (now_ns - telemetry->listed_ns >= LIST_NS) {
        read_driver(telemetry->root, telemetry->driver);
        r = list_chips(telemetry);
        telemetry->listed_ns = now_ns;
    }
    memcpy(ret->driver, telemetry->driver, sizeof(ret->driver));
    if (r == 0 && telemetry->slot_count > 0) {
        ret->chips = calloc(telemetry->slot_count, sizeof(ret->chips[0]));
        r = ret->chips ? 0 : -ENOMEM;
    }
    for (size_t i = 0; r == 0 && i < telemetry->slot_count; i++)
        copy_slot(telemetry->slots[i], now_ns, &ret->chips[ret->count++]);
    (void)pthread_mutex_unlock(&telemetry->lock);
    sort_view(ret);
    return r;
}

void ttm_telemetry_view_done(struct ttm_telemetry_view *view)
{
    free(view->chips);
    *view = (struct ttm_telemetry_view){0};
}

static bool is_ours(int devices_fd, const char *bdf)
{
    char path[sizeof(((struct dirent *)0)->d_name) + sizeof("/vendor")];

    (void)snprintf(path, sizeof(path), "%s/vendor", bdf);
    const struct ttm_value vendor = ttm_attribute_hex(devices_fd, path);
    return vendor.validity == TTM_VALID && vendor.number == PCI_VENDOR;
}

size_t ttm_telemetry_count_pci(const char *root)
{
    const struct dirent *entry;
    size_t count = 0;
    const int fd = ttm_folder_open(root, "/sys/bus/pci/devices");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        if (fd >= 0)
            (void)close(fd);
        return 0;
    }
    /* cppcheck-suppress readdirCalled ; glibc's is safe on a DIR of one's own */
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            count += is_ours(fd, entry->d_name);
    }
    (void)closedir(dir);
    return count;
}
