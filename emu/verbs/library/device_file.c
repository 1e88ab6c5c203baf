/* The device's file, /dev/infiniband/uverbs0. Programs look whether they may use it before they
 * open the device (UCX does). A lab cannot add a file to the machine's /dev; so to those who ask,
 * this one is as /dev/null: a character device that all may use. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

static const char *shown(const char *path)
{
    return strcmp(path, "/dev/infiniband/uverbs0") == 0 ? "/dev/null" : path;
}

EXPORT int stat(const char *restrict path, struct stat *restrict to)
{
    return fstatat(AT_FDCWD, shown(path), to, 0);
}

EXPORT int access(const char *path, int mode)
{
    return faccessat(AT_FDCWD, shown(path), mode, 0);
}
