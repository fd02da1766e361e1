/* SPDX-License-Identifier: Apache-2.0 */
#include "client/original_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

int ttm_original_client_open(struct ttm_original_client *client, const char *path,
                             enum ttm_original_layout layout)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    *client = (struct ttm_original_client){.fd = -1, .layout = layout};
    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
        const int r = -errno;
        (void)close(fd);
        return r;
    }
    client->fd = fd;
    return 0;
}

void ttm_original_client_close(struct ttm_original_client *client)
{
    if (client->fd >= 0)
        (void)close(client->fd);
    client->fd = -1;
}

int ttm_original_client_send(struct ttm_original_client *client,
                             const struct ttm_original_message *message)
{
    struct ttm_original_message msg = *message;
    uint8_t buf[TTM_ORIGINAL_SIZE_MAX];
    size_t sent = 0;

    msg.process_id = getpid();
    msg.timestamp = ttm_clock_wall_ns();
    ttm_original_encode(&msg, client->layout, buf);
    while (sent < client->layout) {
        const ssize_t n = send(client->fd, buf + sent, client->layout - sent, MSG_NOSIGNAL);
        if (n >= 0)
            sent += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int ttm_original_client_alloc(struct ttm_original_client *client, int32_t device,
                              uint8_t buffer_type, uint64_t id, uint64_t bytes)
{
    const struct ttm_original_message msg = {
        .type = TTM_ORIGINAL_ALLOC,
        .device_id = device,
        .buffer_type = buffer_type,
        .buffer_id = id,
        .size = bytes,
    };

    return ttm_original_client_send(client, &msg);
}

int ttm_original_client_free(struct ttm_original_client *client, int32_t device, uint64_t id)
{
    const struct ttm_original_message msg = {
        .type = TTM_ORIGINAL_FREE,
        .device_id = device,
        .buffer_id = id,
    };

    return ttm_original_client_send(client, &msg);
}
