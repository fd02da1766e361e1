/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE server that leaves requests unanswered, by the kernel's own protocol (linux/fuse.h).
 *
 * The kernel asks it while it holds locks, and a request that the server has read cannot be taken
 * back: the process waits, even when it is killed, until the server answers or ends. How the lock on
 * a process's memory map (mmap_lock) comes to be held for writing for as long as one likes:
 *
 *   1. the file is opened for reading, by way of the page cache, and a thread reads it: the page stays
 *      locked, as the read is not answered;
 *   2. it is opened for writing, with FOPEN_DIRECT_IO, and another thread maps it: mmap() has the lock
 *      and drops the cached pages first, which waits for the one that is locked.
 *
 * From then on whoever reads /proc/PID/cmdline waits as well.
 */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_MAX (FUSE_MIN_READ_BUFFER + (64u << 10))
#define FILE_BYTES (1u << 20)
#define LIFETIME_S 180
#define LONG_S 100000 /* for which the kernel may keep what it was told */
#define MINOR 31      /* the version that is spoken here, 7.31 */

/* The nodes: the folder, and one for each file, whose number says how it behaves. */
#define FOLDER_NODE 1
#define NODE_STEP 4

enum behaviour { LOCK, PAGE, FLUSH, STAT, BEHAVIOURS };

static const char *const names[BEHAVIOURS] = {"lock", "page", "flush", "stat"};
_Static_assert(BEHAVIOURS == NODE_STEP, "a node number has the behaviour in it");

static char mounted_at[4096];

static enum behaviour behaviour_of(uint64_t node)
{
    return (enum behaviour)(node % NODE_STEP);
}

static void answer(int device, uint64_t unique, int error, const void *payload, size_t length)
{
    struct {
        struct fuse_out_header header;
        char payload[512];
    } out = {.header = {.len = (uint32_t)(sizeof(struct fuse_out_header) + length),
                        .error = error,
                        .unique = unique}};

    if (length > 0)
        memcpy(out.payload, payload, length);
    (void)!write(device, &out, out.header.len); /* ENOENT: who has asked is gone */
}

static struct fuse_attr attributes_of(uint64_t node)
{
    const bool is_folder = node == FOLDER_NODE;

    return (struct fuse_attr){
        .ino = node,
        .size = is_folder ? 0 : FILE_BYTES,
        .mode = is_folder ? S_IFDIR | 0777 : S_IFREG | 0666,
        .nlink = 1,
    };
}

static void begin(int device, const struct fuse_in_header *request)
{
    const struct fuse_init_in *in = (const struct fuse_init_in *)(request + 1);
    const struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .minor = in->minor < MINOR ? in->minor : MINOR,
        .max_write = 4096,
        .max_background = 64000,
        .congestion_threshold = 64000,
    };

    answer(device, request->unique, 0, &out, sizeof(out));
}

static void look_up(int device, const struct fuse_in_header *request)
{
    static uint64_t last_file = FOLDER_NODE;
    const char *name = (const char *)(request + 1);
    struct fuse_entry_out out = {.entry_valid = LONG_S};

    for (uint64_t b = 0; b < BEHAVIOURS; b++) {
        if (strncmp(name, names[b], strlen(names[b])) != 0)
            continue;
        last_file++; /* each look-up makes a file of its own */
        out.nodeid = last_file * NODE_STEP + b;
        out.attr = attributes_of(out.nodeid);
        out.attr_valid = b == STAT ? 0 : LONG_S;
        answer(device, request->unique, 0, &out, sizeof(out));
        return;
    }
    answer(device, request->unique, -ENOENT, NULL, 0);
}

static void give_attributes(int device, const struct fuse_in_header *request)
{
    const struct fuse_attr_out out = {.attr_valid = LONG_S, .attr = attributes_of(request->nodeid)};

    if (request->nodeid == FOLDER_NODE || behaviour_of(request->nodeid) != STAT)
        answer(device, request->unique, 0, &out, sizeof(out));
}

static void open_file(int device, const struct fuse_in_header *request)
{
    const struct fuse_open_in *in = (const struct fuse_open_in *)(request + 1);
    const bool is_direct = request->nodeid != FOLDER_NODE &&
                           behaviour_of(request->nodeid) == LOCK &&
                           (in->flags & O_ACCMODE) != O_RDONLY;
    /* To keep the cache now leaves its pages for mmap() to drop. */
    const struct fuse_open_out out = {
        .fh = 1, .open_flags = is_direct ? FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE : 0};

    answer(device, request->unique, 0, &out, sizeof(out));
}

/* Returns when the connection is over. */
static void serve(int device)
{
    static _Alignas(8) char bytes[REQUEST_MAX];

    for (;;) {
        const ssize_t n = read(device, bytes, sizeof(bytes));
        const struct fuse_in_header *request = (const struct fuse_in_header *)bytes;
        if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
            continue;
        if (n < (ssize_t)sizeof(*request))
            return;
        switch (request->opcode) {
        case FUSE_INIT:
            begin(device, request);
            break;
        case FUSE_LOOKUP:
            look_up(device, request);
            break;
        case FUSE_GETATTR:
            give_attributes(device, request);
            break;
        case FUSE_OPEN:
        case FUSE_OPENDIR:
            open_file(device, request);
            break;
        case FUSE_FLUSH:
            if (behaviour_of(request->nodeid) != FLUSH)
                answer(device, request->unique, 0, NULL, 0);
            break;
        case FUSE_READ: /* never answered */
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
            break;
        default:
            answer(device, request->unique, -ENOSYS, NULL, 0);
            break;
        }
    }
}

pid_t hostile_fuse_mount(const char *folder, uid_t uid, const char **why)
{
    char options[128];

    (void)snprintf(mounted_at, sizeof(mounted_at), "%s/fuse.%d", folder, (int)getpid());
    *why = "cannot open /dev/fuse";
    const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return -errno;
    *why = "cannot make a mount namespace";
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        (mkdir(mounted_at, 0755) < 0 && errno != EEXIST))
        return -errno;
    (void)snprintf(options, sizeof(options),
                   "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", device, (unsigned)uid,
                   (unsigned)uid);
    *why = "cannot mount a FUSE file system";
    if (mount("hostile", mounted_at, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    *why = "cannot fork";
    const pid_t pid = hostile_fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)setpgid(0, 0);
        hostile_become(uid); /* else the keeper, which changes its user as well, could not end us */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* that was forgotten with the change */
        (void)alarm(LIFETIME_S);                /* whatever happens, 'ps' works again after that */
        serve(device);
        _exit(0);
    }
    (void)close(device); /* it is to be that process's alone: with its end all waits end */
    return pid;
}

int hostile_fuse_open(const char *name, int flags)
{
    char path[sizeof(mounted_at) + 64];

    (void)snprintf(path, sizeof(path), "%s/%s", mounted_at, name);
    return open(path, flags | O_CLOEXEC);
}
