// Sends in a datagram to port 5000 of the address that is given what the processor itself gives a program: random
// numbers by std::random_device, RDRAND and RDSEED, where it has them, and its time-stamp counter.
#include <arpa/inet.h>
#include <cpuid.h>
#include <cstdint>
#include <cstdio>
#include <immintrin.h>
#include <random>
#include <sys/socket.h>
#include <x86intrin.h>

static std::uint64_t drawn() {
    unsigned long long number = 0;
    while (!_rdrand64_step(&number)) {
    }
    return number;
}

static std::uint64_t seed() {
    unsigned short number = 0;
    while (!_rdseed16_step(&number)) {
    }
    return number;
}

int main(int count, char **given) {
    unsigned int level, has, has_too, other, processor;
    std::random_device device;
    std::uint64_t numbers[8] = {device(), device(), __rdtsc(), __rdtscp(&processor)};
    if (__get_cpuid(1, &level, &other, &has, &other) && (has & bit_RDRND)) {
        numbers[4] = drawn();
        numbers[5] = drawn();
    }
    if (__get_cpuid_count(7, 0, &level, &has_too, &other, &other) && (has_too & bit_RDSEED)) {
        numbers[6] = seed();
        numbers[7] = seed();
    }
    for (std::uint64_t number : numbers) {
        std::printf("%016llx\n", static_cast<unsigned long long>(number));
    }
    if (count > 1) {
        sockaddr_in to = {};
        to.sin_family = AF_INET;
        to.sin_port = htons(5000);
        inet_pton(AF_INET, given[1], &to.sin_addr);
        int out = socket(AF_INET, SOCK_DGRAM, 0);
        return sendto(out, numbers, sizeof numbers, 0, reinterpret_cast<sockaddr *>(&to), sizeof to) < 0;
    }
    return 0;
}
