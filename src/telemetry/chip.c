/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/chip.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define CLASS_PATH "/sys/class/tenstorrent/tenstorrent!%u"
#define HWMON_MAX 4     /* one is usual, two have been seen */
#define PIDS_SIZE 32768 /* a line for each open file */
#define HEARTBEAT_NS (2 * TTM_NS_PER_S)

enum place { PLACE_CLASS, PLACE_HWMON };

struct attribute {
    const char *file;
    enum place place;
    uint64_t min,
        max; /* what is possible; firmware has shown 3211 V and fans of 2.7 million turns */
};

static const struct attribute sensors[TTM_SENSOR_COUNT] = {
    [TTM_SENSOR_TEMPERATURE_MC] = {"temp1_input", PLACE_HWMON, 0, 150000},
    [TTM_SENSOR_POWER_UW] = {"power1_input", PLACE_HWMON, 0, 1000000000},
    [TTM_SENSOR_VOLTAGE_MV] = {"in0_input", PLACE_HWMON, 300, 1500},
    [TTM_SENSOR_CURRENT_MA] = {"curr1_input", PLACE_HWMON, 0, 1000000},
    [TTM_SENSOR_FAN_RPM] = {"fan1_input", PLACE_HWMON, 0, 19999},
    [TTM_SENSOR_AICLK_MHZ] = {"tt_aiclk", PLACE_CLASS, 0, 5000},
    [TTM_SENSOR_AXICLK_MHZ] = {"tt_axiclk", PLACE_CLASS, 0, 5000},
    [TTM_SENSOR_ARCCLK_MHZ] = {"tt_arcclk", PLACE_CLASS, 0, 5000},
    [TTM_SENSOR_HEARTBEAT] = {"tt_heartbeat", PLACE_CLASS, 0, UINT32_MAX},
    [TTM_SENSOR_THERMAL_TRIPS] = {"tt_therm_trip_count", PLACE_CLASS, 0, 1000000},
};

static const struct attribute limits[TTM_LIMIT_COUNT] = {
    [TTM_LIMIT_TEMPERATURE_MC] = {"temp1_max", PLACE_HWMON, 1, 150000},
    [TTM_LIMIT_POWER_UW] = {"power1_max", PLACE_HWMON, 1, 1000000000},
    [TTM_LIMIT_VOLTAGE_MV] = {"in0_max", PLACE_HWMON, 300, 1500},
    [TTM_LIMIT_CURRENT_MA] = {"curr1_max", PLACE_HWMON, 1, 1000000},
};

/* slv: the host asks, mst: the chip does. The digit is the NOC. */
static const struct {
    const char *file;
    enum ttm_counter_direction direction;
} counters[TTM_LINK_COUNTERS] = {
    {"slv_posted_wr_data_word_received0", TTM_INTO_CHIP},
    {"slv_posted_wr_data_word_received1", TTM_INTO_CHIP},
    {"slv_nonposted_wr_data_word_received0", TTM_INTO_CHIP},
    {"slv_nonposted_wr_data_word_received1", TTM_INTO_CHIP},
    {"mst_rd_data_word_received0", TTM_INTO_CHIP},
    {"mst_rd_data_word_received1", TTM_INTO_CHIP},
    {"slv_rd_data_word_sent0", TTM_OUT_OF_CHIP},
    {"slv_rd_data_word_sent1", TTM_OUT_OF_CHIP},
    {"mst_posted_wr_data_word_sent0", TTM_OUT_OF_CHIP},
    {"mst_posted_wr_data_word_sent1", TTM_OUT_OF_CHIP},
    {"mst_nonposted_wr_data_word_sent0", TTM_OUT_OF_CHIP},
    {"mst_nonposted_wr_data_word_sent1", TTM_OUT_OF_CHIP},
};

static const struct {
    uint64_t pci_device;
    const char *arch;
    const char *hwmon; /* how its hwmon is named */
} arches[] = {
    {0xfaca, "grayskull", "grayskull"},
    {0x401e, "wormhole_b0", "wormhole"},
    {0xb140, "blackhole", "blackhole"},
};

/* Boards by the part of their serial number that tells them, as the driver spells their names. */
static const struct {
    uint64_t upi;
    const char *board;
} boards[] = {
    {0x03, "e150"},
    {0x07, "e75"},
    {0x14, "n300"},
    {0x18, "n150"},
    {0x35, "galaxy-wormhole"},
    {0x36, "p100"},
    {0x43, "p100a"},
    {0x40, "p150a"},
    {0x41, "p150b"},
    {0x42, "p150c"},
    {0x44, "p300b"},
    {0x45, "p300a"},
    {0x46, "p300c"},
    {0x47, "galaxy-blackhole"},
};

#define UPI_SHIFT 36
#define UPI_MASK 0xfffffull

/* The folders of one chip; -1 where there is none. */
struct folders {
    int class_fd;
    int pci_fd;
    int hwmon_fds[HWMON_MAX];
    size_t hwmon_count;
};

static int is_hwmon(const struct dirent *entry)
{
    return strncmp(entry->d_name, "hwmon", 5) == 0;
}

static void open_hwmons(struct folders *folders)
{
    struct dirent **entries = NULL;
    const int base = openat(folders->pci_fd, "hwmon", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (base < 0)
        return;
    /* In the order of their names, so that of two the same one is always taken. */
    const int count = scandirat(base, ".", &entries, is_hwmon, alphasort);
    for (int i = 0; i < count; i++) {
        const int fd = folders->hwmon_count < HWMON_MAX
                           ? openat(base, entries[i]->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                           : -1;
        if (fd >= 0)
            folders->hwmon_fds[folders->hwmon_count++] = fd;
        free(entries[i]);
    }
    free(entries);
    (void)close(base);
}

static void close_folders(struct folders *folders)
{
    for (size_t i = 0; i < folders->hwmon_count; i++)
        (void)close(folders->hwmon_fds[i]);
    if (folders->pci_fd >= 0)
        (void)close(folders->pci_fd);
    if (folders->class_fd >= 0)
        (void)close(folders->class_fd);
}

/* Whether the class folder is still that chip's: the number may have gone to another card. */
static bool is_there(const struct folders *folders, const struct ttm_chip *chip)
{
    char bdf[TTM_CHIP_NAME_SIZE];

    ttm_attribute_link(folders->class_fd, "device", bdf, sizeof(bdf));
    return strcmp(bdf, chip->bdf) == 0;
}

/* Returns whether the chip is there. */
static bool open_folders(const char *root, const struct ttm_chip *chip, struct folders *ret)
{
    char path[64];

    *ret = (struct folders){.class_fd = -1, .pci_fd = -1};
    (void)snprintf(path, sizeof(path), CLASS_PATH, chip->number);
    ret->class_fd = ttm_folder_open(root, path);
    if (ret->class_fd < 0)
        return false;
    if (!is_there(ret, chip))
        return false;
    ret->pci_fd = openat(ret->class_fd, "device", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->pci_fd >= 0)
        open_hwmons(ret);
    return true;
}

static struct ttm_value read_attribute(const struct folders *folders,
                                       const struct attribute *attribute)
{
    struct ttm_value value = {.validity = TTM_ABSENT};

    if (attribute->place == PLACE_CLASS)
        return ttm_attribute_number(folders->class_fd, attribute->file, attribute->min,
                                    attribute->max);
    for (size_t i = 0; i < folders->hwmon_count && value.validity != TTM_VALID; i++) {
        const struct ttm_value one = ttm_attribute_number(folders->hwmon_fds[i], attribute->file,
                                                          attribute->min, attribute->max);
        if (one.validity != TTM_ABSENT)
            value = one;
    }
    return value;
}

static const char *arch_of_pci(int pci_fd)
{
    const struct ttm_value device = ttm_attribute_hex(pci_fd, "device");

    for (size_t i = 0; i < sizeof(arches) / sizeof(arches[0]); i++) {
        if (device.validity == TTM_VALID && device.number == arches[i].pci_device)
            return arches[i].arch;
    }
    return device.validity == TTM_VALID ? "unknown" : NULL;
}

static const char *read_arch(const struct folders *folders)
{
    const char *arch = arch_of_pci(folders->pci_fd);
    char name[TTM_CHIP_NAME_SIZE] = "";

    if (!arch && folders->hwmon_count > 0)
        (void)ttm_attribute_text(folders->hwmon_fds[0], "name", name, sizeof(name));
    for (size_t i = 0; !arch && i < sizeof(arches) / sizeof(arches[0]); i++) {
        if (strcmp(name, arches[i].hwmon) == 0)
            arch = arches[i].arch;
    }
    return arch;
}

static const char *board_of_upi(uint64_t upi)
{
    for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
        if (boards[i].upi == upi)
            return boards[i].board;
    }
    return NULL;
}

/* By the driver's word; of a board that is newer than the driver, by its serial number. */
static void read_board(const struct folders *folders, struct ttm_chip *chip)
{
    char type[TTM_CHIP_NAME_SIZE];
    const char *board = NULL;

    (void)ttm_attribute_text(folders->class_fd, "tt_card_type", type, sizeof(type));
    if (type[0] && strcmp(type, "unknown") != 0)
        board = type;
    else if (chip->board_id.validity == TTM_VALID)
        board = board_of_upi(chip->board_id.number >> UPI_SHIFT & UPI_MASK);
    if (!board) { /* of Galaxies alone it is sure that PCI says the same */
        const struct ttm_value id = ttm_attribute_hex(folders->pci_fd, "subsystem_device");
        if (id.validity == TTM_VALID && (id.number == 0x35 || id.number == 0x47))
            board = board_of_upi(id.number);
    }
    if (board)
        (void)snprintf(chip->board, sizeof(chip->board), "%s", board);
}

static void keep_newer(struct ttm_value *kept, struct ttm_value value)
{
    if (value.validity == TTM_VALID || kept->validity != TTM_VALID)
        *kept = value;
}

/* "16.0 GT/s PCIe" is the fourth generation. */
static struct ttm_value read_generation(int pci_fd, const char *file)
{
    static const char *const speeds[] = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0", "128.0"};
    char text[TTM_CHIP_NAME_SIZE];
    const int r = ttm_attribute_text(pci_fd, file, text, sizeof(text));
    struct ttm_value value = {.validity = ttm_validity_of(r)};

    if (value.validity != TTM_VALID)
        return value;
    value.validity = TTM_IMPLAUSIBLE;
    const size_t length = strcspn(text, " ");
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        /* Older kernels write "5 GT/s". */
        const bool is_speed =
            (length == strlen(speeds[i]) && strncmp(text, speeds[i], length) == 0) ||
            (i > 0 && length + 2 == strlen(speeds[i]) && strncmp(text, speeds[i], length) == 0);
        if (is_speed && strncmp(text + length, " GT/s", 5) == 0)
            value = (struct ttm_value){TTM_VALID, i + 1};
    }
    return value;
}

/* What does not change while a chip is in its slot, so it is kept over a reset. */
static void read_identity(const struct folders *folders, struct ttm_chip *chip)
{
    char text[TTM_CHIP_NAME_SIZE];

    const char *arch = read_arch(folders);
    if (arch)
        chip->arch = arch;
    keep_newer(&chip->asic_id, ttm_attribute_hex(folders->class_fd, "tt_asic_id"));
    keep_newer(&chip->board_id, ttm_attribute_hex(folders->class_fd, "tt_serial"));
    read_board(folders, chip);
    if (ttm_attribute_text(folders->class_fd, "tt_fw_bundle_ver", text, sizeof(text)) > 0)
        memcpy(chip->firmware, text, sizeof(text));
    for (size_t i = 0; i < TTM_LIMIT_COUNT; i++)
        keep_newer(&chip->limits[i], read_attribute(folders, &limits[i]));
    keep_newer(&chip->link_gen_max, read_generation(folders->pci_fd, "max_link_speed"));
    keep_newer(&chip->link_width_max,
               ttm_attribute_number(folders->pci_fd, "max_link_width", 1, 32));
    chip->is_identified = chip->state == TTM_CHIP_OK;
}

/* Drivers before 1.34 took the sixteenths of a degree that Wormhole gives for 64 thousandths. */
static bool is_hot_driver(const char *root)
{
    char version[TTM_CHIP_NAME_SIZE] = "";
    char *end;
    const int fd = ttm_folder_open(root, "/sys/module/tenstorrent");

    if (fd < 0)
        return false;
    (void)ttm_attribute_text(fd, "version", version, sizeof(version));
    (void)close(fd);
    const unsigned long major = strtoul(version, &end, 10);
    if (end == version || *end != '.')
        return false;
    return major < 1 || (major == 1 && strtoul(end + 1, NULL, 10) < 34);
}

static void correct_temperature(struct ttm_chip *chip)
{
    struct ttm_value *temperature = &chip->sensors[TTM_SENSOR_TEMPERATURE_MC];

    if (chip->is_too_hot && strcmp(chip->arch, "wormhole_b0") == 0)
        temperature->number = temperature->number * 1000 / 1024;
}

static void read_sensors(const struct folders *folders, struct ttm_chip *chip)
{
    for (size_t i = 0; i < TTM_SENSOR_COUNT; i++)
        chip->sensors[i] = read_attribute(folders, &sensors[i]);
    correct_temperature(chip);
}

static void read_link(const struct folders *folders, struct ttm_chip *chip)
{
    chip->link_gen = read_generation(folders->pci_fd, "current_link_speed");
    chip->link_width = ttm_attribute_number(folders->pci_fd, "current_link_width", 1, 32);
}

/* Opens each file: twelve of each chip would be too many to keep. */
static void read_counters(int class_fd, struct ttm_chip *chip)
{
    const int fd = openat(class_fd, "pcie_perf_counters", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    chip->counters = (struct ttm_link_counters){.heartbeat = chip->sensors[TTM_SENSOR_HEARTBEAT]};
    if (fd < 0)
        return;
    for (size_t i = 0; i < TTM_LINK_COUNTERS; i++)
        chip->counters.words[i] = ttm_attribute_number(fd, counters[i].file, 0, UINT32_MAX);
    (void)close(fd);
}

/* One sensor without a value may have lost its tag; a chip in reset has none with one. */
static enum ttm_chip_state state_of(const struct ttm_chip *chip)
{
    bool has_valid = false, has_reset = false;

    for (size_t i = 0; i < TTM_SENSOR_COUNT; i++) {
        if (chip->sensors[i].validity == TTM_REMOVED)
            return TTM_CHIP_REMOVED;
        has_valid |= chip->sensors[i].validity == TTM_VALID;
        has_reset |= chip->sensors[i].validity == TTM_IN_RESET;
    }
    return has_reset && !has_valid ? TTM_CHIP_RESET : TTM_CHIP_OK;
}

static void add_holder(struct ttm_chip *chip, uint64_t pid)
{
    if (pid == 0) {
        chip->foreign_fd_count++;
        return;
    }
    for (size_t i = 0; i < chip->holder_count; i++) {
        if ((uint64_t)chip->holders[i].pid == pid) {
            chip->holders[i].fd_count++;
            return;
        }
    }
    if (chip->holder_count < TTM_CHIP_HOLDERS_MAX && pid <= INT32_MAX)
        chip->holders[chip->holder_count++] = (struct ttm_chip_holder){(int32_t)pid, 1};
}

/* One pid a line. A line that is none, or that was cut off, is passed over. */
static void parse_pids(struct ttm_chip *chip, const char *text)
{
    while (*text) {
        char *end;
        const size_t length = strcspn(text, "\n");
        if (text[length] == '\0')
            return;
        if (length > 0 && length < 12 && strspn(text, "0123456789") == length)
            add_holder(chip, strtoull(text, &end, 10));
        text += length + 1;
    }
}

/* Returns a fd or -errno. */
static int open_pids(const char *root, unsigned number)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/driver/tenstorrent/%u", number);
    const int folder_fd = ttm_folder_open(root, path);
    if (folder_fd < 0)
        return folder_fd;
    const int fd = openat(folder_fd, "pids", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    const int error = errno;
    (void)close(folder_fd);
    if (fd < 0)
        return -error;
    return fd;
}

/* The text of "pids", ended by a NUL. Returns 0 or -errno; an empty file says that nobody does. */
static int read_pids(int fd, char ret[PIDS_SIZE])
{
    size_t have = 0;
    ssize_t n;

    do {
        n = pread(fd, ret + have, PIDS_SIZE - 1 - have, (off_t)have);
        have += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    ret[have] = '\0';
    return n < 0 ? -errno : 0;
}

/* 'fd' is that of "pids", or why there is none. */
static void read_holders(int fd, struct ttm_chip *chip)
{
    char text[PIDS_SIZE];

    chip->holder_count = 0;
    chip->foreign_fd_count = 0;
    const int r = fd < 0 ? fd : read_pids(fd, text);
    chip->holders_validity = ttm_validity_of(r);
    if (r == 0)
        parse_pids(chip, text);
}

void ttm_chip_init(const char *root, struct ttm_chip *chip, const char *bdf, unsigned number)
{
    struct folders folders;

    *chip = (struct ttm_chip){
        .number = number,
        .arch = "unknown",
        .is_too_hot = is_hot_driver(root),
    };
    (void)snprintf(chip->bdf, sizeof(chip->bdf), "%s", bdf);
    const char *arch = open_folders(root, chip, &folders) ? arch_of_pci(folders.pci_fd) : NULL;
    if (arch)
        chip->arch = arch;
    close_folders(&folders);
}

void ttm_chip_read(const char *root, struct ttm_chip *chip)
{
    struct ttm_chip next = *chip;
    struct folders folders;

    next.state = TTM_CHIP_REMOVED;
    if (open_folders(root, chip, &folders)) {
        read_sensors(&folders, &next);
        next.state = state_of(&next);
        /* A new firmware comes with a reset. */
        if (chip->state != TTM_CHIP_OK || !chip->is_identified)
            read_identity(&folders, &next);
        read_link(&folders, &next);
        read_counters(folders.class_fd, &next);
        const int pids_fd = open_pids(root, chip->number);
        read_holders(pids_fd, &next);
        if (pids_fd >= 0)
            (void)close(pids_fd);
        /* One that goes while it is read leaves values that are none. */
        if (!is_there(&folders, chip))
            next.state = TTM_CHIP_REMOVED;
    }
    close_folders(&folders);
    if (next.state == TTM_CHIP_REMOVED)
        chip->state = TTM_CHIP_REMOVED;
    else
        *chip = next;
}

/* ---- between two readings ---- */

static const enum ttm_sensor glanced[] = {TTM_SENSOR_TEMPERATURE_MC, TTM_SENSOR_POWER_UW,
                                          TTM_SENSOR_AICLK_MHZ, TTM_SENSOR_HEARTBEAT};
#define GLANCED (sizeof(glanced) / sizeof(glanced[0]))

static uint64_t find_node(const char *root, unsigned number)
{
    char path[PATH_MAX];
    struct stat st;
    const int n = snprintf(path, sizeof(path), "%s" CLASS_PATH, root, number);

    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 ? st.st_ino : 0;
}

/* As read_attribute() finds it. */
static int open_sensor(const struct folders *folders, const struct attribute *attribute)
{
    int fd = -1;

    if (attribute->place == PLACE_CLASS)
        return openat(folders->class_fd, attribute->file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    for (size_t i = 0; i < folders->hwmon_count && fd < 0; i++)
        fd = openat(folders->hwmon_fds[i], attribute->file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    return fd;
}

void ttm_chip_files_open(struct ttm_chip_files *files, const char *root,
                         const struct ttm_chip *chip)
{
    const uint64_t node = find_node(root, chip->number);
    struct folders folders;

    ttm_chip_files_close(files);
    if (chip->state != TTM_CHIP_OK || node == 0)
        return;
    if (open_folders(root, chip, &folders)) {
        *files = (struct ttm_chip_files){.node = node, .class_fd = dup(folders.class_fd)};
        memset(files->sensor_fds, -1, sizeof(files->sensor_fds));
        for (size_t i = 0; i < GLANCED; i++) {
            if (chip->sensors[glanced[i]].validity == TTM_VALID)
                files->sensor_fds[glanced[i]] = open_sensor(&folders, &sensors[glanced[i]]);
        }
        files->pids_fd = open_pids(root, chip->number);
    }
    close_folders(&folders);
}

void ttm_chip_files_close(struct ttm_chip_files *files)
{
    if (files->node == 0)
        return;
    for (size_t i = 0; i < TTM_SENSOR_COUNT; i++) {
        if (files->sensor_fds[i] >= 0)
            (void)close(files->sensor_fds[i]);
    }
    if (files->pids_fd >= 0)
        (void)close(files->pids_fd);
    if (files->class_fd >= 0)
        (void)close(files->class_fd);
    *files = TTM_CHIP_FILES_NONE;
}

/* In a tree that stands in for the machine, another file may have taken its place. */
static bool is_replaced(int fd)
{
    struct stat st;

    return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

bool ttm_chip_glance(const struct ttm_chip_files *files, const char *root, struct ttm_chip *chip)
{
    const struct folders folders = {.class_fd = files->class_fd};

    /* A card that came back under its number has a folder of its own. */
    if (files->node == 0 || find_node(root, chip->number) != files->node ||
        !is_there(&folders, chip))
        return false;
    for (size_t i = 0; i < GLANCED; i++) {
        const enum ttm_sensor which = glanced[i];
        if (chip->sensors[which].validity != TTM_VALID)
            continue; /* the whole reading looks whether it has one by now */
        if (files->sensor_fds[which] < 0 || is_replaced(files->sensor_fds[which]))
            return false;
        chip->sensors[which] =
            ttm_attribute_again(files->sensor_fds[which], sensors[which].min, sensors[which].max);
        if (chip->sensors[which].validity != TTM_VALID)
            return false;
    }
    correct_temperature(chip);
    read_holders(files->pids_fd, chip);
    return true;
}

/* ---- the link ---- */

const char *ttm_link_counter_name(size_t counter)
{
    return counters[counter].file;
}

void ttm_chip_count(const struct ttm_chip_files *files, struct ttm_chip *chip)
{
    read_counters(files->class_fd, chip);
}

uint64_t ttm_link_capacity(const struct ttm_chip *chip)
{
    /* Of one lane, with what its encoding leaves of it. */
    static const uint64_t lane_mb_per_s[] = {0, 250, 500, 985, 1970, 3939, 7878, 15755};

    if (chip->link_gen.validity != TTM_VALID || chip->link_width.validity != TTM_VALID ||
        chip->link_gen.number >= sizeof(lane_mb_per_s) / sizeof(lane_mb_per_s[0]))
        return 0;
    return lane_mb_per_s[chip->link_gen.number] * chip->link_width.number * 1000000;
}

uint64_t ttm_link_unambiguous_ns(const struct ttm_chip *chip)
{
    const uint64_t mb_per_s = ttm_link_capacity(chip) / 1000000;
    const uint64_t bytes = (uint64_t)TTM_LINK_WORD_BYTES << 32;

    return mb_per_s > 0 ? bytes * 1000 / mb_per_s : 0;
}

struct ttm_value ttm_link_rate(const struct ttm_link_counters *before, const struct ttm_chip *chip,
                               uint64_t elapsed_ns, enum ttm_counter_direction direction)
{
    const struct ttm_value nothing = {.validity = TTM_ABSENT};
    struct ttm_value rate = ttm_link_traffic(before, &chip->counters, direction);

    if (rate.validity != TTM_VALID || elapsed_ns == 0 ||
        elapsed_ns >= ttm_link_unambiguous_ns(chip) ||
        chip->counters.heartbeat.number < before->heartbeat.number)
        return nothing;
    rate.number = (uint64_t)((double)rate.number * TTM_LINK_WORD_BYTES * 1e9 / (double)elapsed_ns);
    return rate.number <= ttm_link_capacity(chip) ? rate : nothing;
}

struct ttm_value ttm_link_traffic(const struct ttm_link_counters *before,
                                  const struct ttm_link_counters *after,
                                  enum ttm_counter_direction direction)
{
    struct ttm_value sum = {.validity = TTM_ABSENT};

    for (size_t i = 0; i < TTM_LINK_COUNTERS; i++) {
        const struct ttm_value *a = &before->words[i], *b = &after->words[i];
        if (counters[i].direction != direction || a->validity != TTM_VALID ||
            b->validity != TTM_VALID)
            continue;
        sum.validity = TTM_VALID;
        sum.number += (uint32_t)(b->number - a->number); /* each wraps for itself */
    }
    return sum;
}

enum ttm_heartbeat_state ttm_heartbeat_take(struct ttm_heartbeat *heartbeat, struct ttm_value value,
                                            uint64_t now_ns)
{
    if (value.validity != TTM_VALID) { /* in reset: it begins anew */
        *heartbeat = (struct ttm_heartbeat){0};
        return TTM_HEARTBEAT_UNKNOWN;
    }
    if (!heartbeat->has_value) {
        *heartbeat = (struct ttm_heartbeat){true, value.number, now_ns, now_ns};
        return TTM_HEARTBEAT_UNKNOWN;
    }
    if (value.number != heartbeat->value) {
        heartbeat->value = value.number;
        heartbeat->changed_ns = now_ns;
    }
    if (now_ns - heartbeat->first_ns <= HEARTBEAT_NS)
        return TTM_HEARTBEAT_UNKNOWN;
    return now_ns - heartbeat->changed_ns > HEARTBEAT_NS ? TTM_HEARTBEAT_DEAD : TTM_HEARTBEAT_OK;
}
