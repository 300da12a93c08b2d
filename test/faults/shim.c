/*
 * Loaded before everything else (LD_PRELOAD), it makes writes to the database fail on demand. Which way is the first
 * byte of the file that DISK_FAULT names:
 *
 *   '-'  not at all
 *   'f'  the disk is full: nothing is written
 *   's'  the disk is full in the middle: half is written
 *   'e'  writes fail with an input/output error
 *   'y'  syncs fail with an input/output error
 *
 * The 32-bit number at offset 4 counts the calls that failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static volatile char *control;

__attribute__((constructor)) static void map_control(void) {
  const char *path = getenv("DISK_FAULT");
  int fd = path == NULL ? -1 : open(path, O_RDWR);
  if (fd < 0) return;
  void *mapped = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) control = mapped;
  close(fd);
}

static char fault(void) { return control == NULL ? '-' : control[0]; }

/* The database and its log; the index of the log is shared memory. */
static int is_database(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, "/mailroom.db") != NULL && strstr(path, "-shm") == NULL;
}

static int fail(int error) {
  __atomic_fetch_add((volatile uint32_t *)(control + 4), 1, __ATOMIC_SEQ_CST);
  errno = error;
  return -1;
}

#define REAL(name)                     \
  static __typeof__(&name) real;       \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define SYNC(name)                                               \
  int name(int fd) {                                             \
    REAL(name);                                                  \
    if (fault() == 'y' && is_database(fd)) return fail(EIO);     \
    return real(fd);                                             \
  }
SYNC(fsync)
SYNC(fdatasync)

ssize_t write(int fd, const void *bytes, size_t count) {
  REAL(write);
  char kind = fault();
  if ((kind == 'f' || kind == 's') && is_database(fd)) return fail(ENOSPC);
  if (kind == 'e' && is_database(fd)) return fail(EIO);
  return real(fd, bytes, count);
}

#define WRITE_AT(name, offset_type)                                                 \
  ssize_t name(int fd, const void *bytes, size_t count, offset_type offset) {       \
    REAL(name);                                                                     \
    char kind = fault();                                                            \
    if (kind == 'f' && is_database(fd)) return fail(ENOSPC);                        \
    if (kind == 'e' && is_database(fd)) return fail(EIO);                           \
    if (kind == 's' && is_database(fd)) {                                           \
      if (count > 1) (void)!real(fd, bytes, count / 2, offset);                     \
      return fail(ENOSPC);                                                          \
    }                                                                               \
    return real(fd, bytes, count, offset);                                          \
  }
WRITE_AT(pwrite, off_t)
WRITE_AT(pwrite64, off64_t)
