/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attribute - one small file of /sys or /proc, and whether to believe it.
 *
 * A read may take as long as the driver likes: of a chip that is being reset, for
 * the length of the reset. Nothing here waits for anything else, keeps state, or
 * opens a device.
 */
#ifndef TTM_TELEMETRY_ATTRIBUTE_H
#define TTM_TELEMETRY_ATTRIBUTE_H

#include <stddef.h>
#include <stdint.h>

/* What is known of a value, apart from the value. */
enum ttm_validity {
    TTM_ABSENT = 0,  /* this driver, firmware or board does not have it */
    TTM_VALID,       /* read, and possible */
    TTM_IMPLAUSIBLE, /* read, and cannot be true */
    TTM_IN_RESET,    /* the chip gives no values at present */
    TTM_REMOVED,     /* the chip has gone */
    TTM_DENIED,      /* we may not read it */
};

/* A 'number' other than that of TTM_VALID is 0. */
struct ttm_value {
    enum ttm_validity validity;
    uint64_t number;
};

/* root + path as a folder. Returns a fd that the caller closes, or -errno. */
int ttm_folder_open(const char *root, const char *path);

/*
 * The first line of a file, without its newline, cut to fit. Returns its length;
 * -ENODATA when the file is empty, which is how a recorded tree shows a chip in
 * reset; or -errno. 'ret' is "" after an error.
 */
int ttm_attribute_text(int folder_fd, const char *name, char *ret, size_t size);

/* What the result of ttm_attribute_text() says of a value. */
enum ttm_validity ttm_validity_of(int r);

/* A decimal number from 'min' to 'max'; what is no number or not in between is implausible. */
struct ttm_value ttm_attribute_number(int folder_fd, const char *name, uint64_t min, uint64_t max);

/* The same of a file that is open already, from its beginning; the kernel tells the value anew. */
struct ttm_value ttm_attribute_again(int fd, uint64_t min, uint64_t max);

/* As 16 hexadecimal digits, which is how the driver writes ids, or "0x1e52", as PCI does. */
struct ttm_value ttm_attribute_hex(int folder_fd, const char *name);

/* The last part of what a link points at; "" when there is none. */
void ttm_attribute_link(int folder_fd, const char *name, char *ret, size_t size);

#endif /* TTM_TELEMETRY_ATTRIBUTE_H */
