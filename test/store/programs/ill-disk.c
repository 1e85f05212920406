// Preloaded into a program, makes the disk under its database ill. The file that ILL_DISK names says how: `slow <ms>` waits
// in each flush of the database's files, `error <file>` fails flushes and writes of that one with EIO, anything else lets all through.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file's name if it is one of the database's, else an empty text. */
static const char *database_file(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  path[length < 0 ? 0 : length] = 0;
  const char *name = strstr(path, "/relay.db");
  return name == NULL ? "" : name + 1;
}

static void read_state(char *state, size_t size) {
  memset(state, 0, size);
  int fd = open(getenv("ILL_DISK"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (read(fd, state, size - 1) < 0) state[0] = 0;
  close(fd);
}

/* Whether the call fails. A slow flush looks again 100 times a second, so that it ends when the disk gets well. */
static int is_ill(int fd, int is_flush) {
  char state[64], path[4096];
  int waited = 0;
  const char *name = database_file(fd, path, sizeof path);
  if (name[0] == 0) return 0;
  read_state(state, sizeof state);
  while (is_flush && strncmp(state, "slow ", 5) == 0 && waited < atoi(state + 5)) {
    usleep(10000);
    waited += 10;
    read_state(state, sizeof state);
  }
  return strncmp(state, "error ", 6) == 0 && strcmp(state + 6, name) == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF_ILL(fd, is_flush) \
  if (is_ill(fd, is_flush)) { \
    errno = EIO; \
    return -1; \
  }

int fsync(int fd) {
  FAIL_IF_ILL(fd, 1)
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  FAIL_IF_ILL(fd, 1)
  return REAL(fdatasync)(fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  FAIL_IF_ILL(fd, 0)
  return REAL(pwrite)(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  FAIL_IF_ILL(fd, 0)
  return REAL(pwrite64)(fd, bytes, count, offset);
}
