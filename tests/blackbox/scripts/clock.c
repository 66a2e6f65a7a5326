/* A calendar that is wrong by CLOCK_AHEAD_S seconds, for whoever is started with this preloaded. Time that is only
   measured passes as ever. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    const char *ahead = getenv("CLOCK_AHEAD_S");
    if (!failed && id == CLOCK_REALTIME && ahead) at->tv_sec += atoll(ahead);
    return failed;
}
