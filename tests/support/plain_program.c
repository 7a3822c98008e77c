/* Programs of the pinned traces. They need no library, so each system call is one that stands here: built with
 * gcc -O1 -static -nostdlib -ffreestanding -fno-stack-protector, for x86-64. Their first word says what they do. */

typedef unsigned char byte;
typedef struct { unsigned short family, port; unsigned int address; byte zero[8]; } place_t;
typedef struct { long seconds, nanoseconds; } time_t_;

enum { READ = 0, WRITE = 1, CLOSE = 3, NANOSLEEP = 35, SOCKET = 41, CONNECT = 42, ACCEPT = 43, SENDTO = 44,
       RECVFROM = 45, BIND = 49, LISTEN = 50, EXIT = 60, GETRANDOM = 318 };
enum { AF_INET = 2, STREAM = 1, DATAGRAM = 2 };

static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#define DO(number, a, b, c) call(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static byte bytes[65536];
static place_t place = {AF_INET, 0x8813 /* 5000 */, 0, {0}};

/* 200 datagrams of random lengths and contents, after random pauses. */
static void datagrams(void) {
    long socket = DO(SOCKET, AF_INET, DATAGRAM, 0);
    place.address = 0x0200000a; /* 10.0.0.2 */
    for (int number = 0; number < 200; number++) {
        DO(GETRANDOM, bytes, 256, 0);
        time_t_ pause = {0, 100000 + 20000L * bytes[0]};
        DO(NANOSLEEP, &pause, 0, 0);
        call(SENDTO, socket, (long)bytes, 100 + 4 * bytes[1], 0, (long)&place, sizeof place);
    }
}

static void takes_datagrams(void) {
    long socket = DO(SOCKET, AF_INET, DATAGRAM, 0);
    DO(BIND, socket, &place, sizeof place);
    while (call(RECVFROM, socket, (long)bytes, sizeof bytes, 0, 0, 0) > 0) {
    }
}

/* A connection that carries a megabyte, in pieces of 64 KiB. */
static void connection(void) {
    long socket = DO(SOCKET, AF_INET, STREAM, 0);
    place.address = 0x0200000a;
    DO(CONNECT, socket, &place, sizeof place);
    for (int number = 0; number < 16; number++)
        for (long sent = 0, one; sent < 65536 && (one = DO(WRITE, socket, bytes + sent, 65536 - sent)) > 0; sent += one) {
        }
}

static void takes_a_connection(void) {
    long socket = DO(SOCKET, AF_INET, STREAM, 0);
    DO(BIND, socket, &place, sizeof place);
    DO(LISTEN, socket, 8, 0);
    long taken = DO(ACCEPT, socket, 0, 0);
    while (DO(READ, taken, bytes, sizeof bytes) > 0) {
    }
}

__attribute__((used)) static void begin(long *stack) {
    const char *what = (const char *)stack[2]; /* the first argument */
    switch (what[0]) {
    case 'd': datagrams(); break;
    case 'D': takes_datagrams(); break;
    case 'c': connection(); break;
    case 'C': takes_a_connection(); break;
    }
    DO(EXIT, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
