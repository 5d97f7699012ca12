// A library for LD_PRELOAD that makes each fdatasync take longer, as on a slow disk. PostgreSQL flushes its WAL with
// fdatasync, unless wal_sync_method names another call. MariaDB flushes both its binary log and InnoDB's log with it.
//
// The first four bytes of the file that HOTROW_FLUSH_DELAY_FILE names are the delay in microseconds. The file is mapped
// once, before main, so all processes of the server see a new delay with their next flush.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const uint32_t *delay_us;

__attribute__((constructor)) static void map_delay(void) {
    const char *path = getenv("HOTROW_FLUSH_DELAY_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *delay_us, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        // A server without the delay would give wrong figures.
        perror("cannot map HOTROW_FLUSH_DELAY_FILE");
        _exit(1);
    }
    close(file);
    delay_us = page;
}

int fdatasync(int file) {
    if (syscall(SYS_fdatasync, file) != 0)
        return -1;
    uint32_t us = *delay_us;
    struct timespec left = {us / 1000000, us % 1000000 * 1000L};
    int before = errno;
    // A signal does not shorten the flush of a real disk.
    while (us > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    errno = before;
    return 0;
}
