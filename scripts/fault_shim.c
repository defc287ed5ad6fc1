/* Faults that a machine has seldom, for scripts/fault_matrix.py: a disk whose syncs hang, files that hang, and a clock that jumps.
 * LD_PRELOADed into a process; FAULT_SHIM names a file of two numbers that says what goes on at the moment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct state {
    volatile int64_t clock_offset; /* seconds that CLOCK_REALTIME is off */
    volatile int64_t hang;         /* 1: fsync and fdatasync do not come back; 2: neither do they nor writes, of FAULT_SHIM_FILES; 3: those take 0.3 s */
};

static struct state none;
static struct state *state = &none;
static const char *files;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_SHIM");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct state), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) state = mapped;
    close(file);
    files = getenv("FAULT_SHIM_FILES");
}

static int is_chosen(int file) {
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return files && strstr(path, files) != NULL;
}

static void wait_for_the_file(int file) {
    if (state->hang < 2 || !is_chosen(file)) return;
    if (state->hang == 3) usleep(300000);
    while (state->hang == 2) usleep(20000);
}

static void wait_for_the_disk(int file) {
    while (state->hang == 1) usleep(20000);
    wait_for_the_file(file);
}

ssize_t write(int file, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    wait_for_the_file(file);
    return real(file, data, size);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    wait_for_the_file(file);
    return real(file, data, size, place);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    return pwrite64(file, data, size, place);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_the_disk(file);
    return real(file);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    wait_for_the_disk(file);
    return real(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += state->clock_offset;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    if (result == 0) now->tv_sec += state->clock_offset;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
