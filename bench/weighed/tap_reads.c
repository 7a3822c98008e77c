/* What it costs to read a frame from a TAP, one by one and through io_uring:

       cc -O2 -o tap_reads bench/weighed/tap_reads.c && unshare --user --map-root-user --net ./tap_reads

   Each round fills the TAP's queue with FRAMES datagrams of 1470 bytes and reads them again: by read(), and by io_uring
   with a registered file and registered buffers, BATCH reads a call. Filling is not timed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 400, BATCH = 40, ROUNDS = 200, ROOM = 2048 };
static char room[FRAMES][ROOM];

static void must(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

static void fill(int sender, const struct sockaddr_in *to) {
    static char payload[1470];
    for (int i = 0; i < FRAMES; i++)
        must(sendto(sender, payload, sizeof payload, 0, (const void *)to, sizeof *to) > 0, "sendto");
}

struct ring {
    int fd;
    char *rings;
    struct io_uring_sqe *entries;
    struct io_uring_params at;
};

static struct ring open_ring(int tap) {
    struct ring ring = {0};
    ring.fd = syscall(__NR_io_uring_setup, 2 * BATCH, &ring.at);
    must(ring.fd >= 0, "io_uring_setup");
    size_t asked = ring.at.sq_off.array + ring.at.sq_entries * sizeof(unsigned);
    size_t done = ring.at.cq_off.cqes + ring.at.cq_entries * sizeof(struct io_uring_cqe);
    int how = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    ring.rings = mmap(0, asked > done ? asked : done, how, flags, ring.fd, IORING_OFF_SQ_RING);
    ring.entries = mmap(0, ring.at.sq_entries * sizeof *ring.entries, how, flags, ring.fd, IORING_OFF_SQES);
    must(ring.rings != MAP_FAILED && ring.entries != MAP_FAILED, "mmap");
    struct iovec all = {room, sizeof room};
    must(!syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &all, 1), "registered buffers");
    must(!syscall(__NR_io_uring_register, ring.fd, IORING_REGISTER_FILES, &tap, 1), "a registered file");
    return ring;
}

static int read_all_by(struct ring *ring) {
    _Atomic unsigned *tail = (void *)(ring->rings + ring->at.sq_off.tail);
    _Atomic unsigned *head = (void *)(ring->rings + ring->at.cq_off.head);
    _Atomic unsigned *end = (void *)(ring->rings + ring->at.cq_off.tail);
    unsigned *array = (void *)(ring->rings + ring->at.sq_off.array);
    struct io_uring_cqe *results = (void *)(ring->rings + ring->at.cq_off.cqes);
    int frames = 0;
    for (int first = 0; first < FRAMES; first += BATCH) {
        unsigned from = atomic_load(tail);
        for (int i = 0; i < BATCH; i++) {
            unsigned place = (from + i) & (ring->at.sq_entries - 1);
            ring->entries[place] = (struct io_uring_sqe){
                .opcode = IORING_OP_READ_FIXED, .flags = IOSQE_FIXED_FILE, .addr = (unsigned long)room[first + i], .len = ROOM};
            array[place] = place;
        }
        atomic_store(tail, from + BATCH);
        must(syscall(__NR_io_uring_enter, ring->fd, BATCH, BATCH, IORING_ENTER_GETEVENTS, 0, 0) == BATCH, "io_uring_enter");
        unsigned at = atomic_load(head);
        for (; at != atomic_load(end); at++)
            frames += results[at & (ring->at.cq_entries - 1)].res > 0;
        atomic_store(head, at);
    }
    return frames;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, double *ns) {
    qsort(ns, ROUNDS, sizeof *ns, ascending);
    printf("%s: median %.0f ns a frame, 90 %% of rounds between %.0f and %.0f\n", name, ns[ROUNDS / 2], ns[ROUNDS / 20],
           ns[ROUNDS - 1 - ROUNDS / 20]);
}

int main(void) {
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    struct ifreq asked = {.ifr_name = "t0", .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    must(tap >= 0 && !ioctl(tap, TUNSETIFF, &asked), "the TAP");
    must(!system("ip addr add 10.9.0.1/24 dev t0 && ip link set t0 up txqueuelen 1000 && "
                 "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev t0"),
         "ip");
    int sender = socket(AF_INET, SOCK_DGRAM, 0), all_that_waits = 1 << 26;
    must(!setsockopt(sender, SOL_SOCKET, SO_SNDBUFFORCE, &all_that_waits, sizeof all_that_waits), "SO_SNDBUFFORCE");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = inet_addr("10.9.0.2")};
    struct ring ring = open_ring(tap);
    double plain[ROUNDS], batched[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        /* What the kernel sends by itself, such as router solicitations, must not stand in for a datagram. */
        while (read(tap, room[0], ROOM) > 0)
            ;
        fill(sender, &to);
        double begin = now_ns();
        int frames = 0;
        for (int i = 0; i < FRAMES; i++)
            frames += read(tap, room[i], ROOM) > 0;
        plain[round] = (now_ns() - begin) / FRAMES;
        must(frames == FRAMES, "a frame is missing");
        fill(sender, &to);
        begin = now_ns();
        frames = read_all_by(&ring);
        batched[round] = (now_ns() - begin) / FRAMES;
        must(frames == FRAMES, "a frame is missing");
    }
    show("read", plain);
    show("io_uring", batched);
}
