/* SPDX-License-Identifier: Apache-2.0 */
#include "server/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void ttm_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (!path || (path[0] != '/' && path[0] != '@'))
        return;
    const size_t length = strlen(path);
    if (length >= sizeof(addr.sun_path))
        return;
    memcpy(addr.sun_path, path, length);
    if (addr.sun_path[0] == '@') /* an abstract name begins with a NUL */
        addr.sun_path[0] = '\0';

    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    (void)close(fd);
}
