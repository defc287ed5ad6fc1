/* Faults that a machine has seldom, for scripts/fault_matrix.py: a disk whose syncs hang, and a clock that jumps.
 * LD_PRELOADed into a process; FAULT_SHIM names a file of two numbers that says what goes on at the moment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct state {
    volatile int64_t clock_offset; /* seconds that CLOCK_REALTIME is off */
    volatile int64_t hang;         /* not 0: fsync and fdatasync do not come back */
};

static struct state none;
static struct state *state = &none;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_SHIM");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct state), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) state = mapped;
    close(file);
}

static void wait_for_the_disk(void) {
    while (state->hang) usleep(20000);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_the_disk();
    return real(file);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    wait_for_the_disk();
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
