/* What every case shares: functions that stay functions, and one number that depends on all that ran. */
#ifndef AFTERLINK_CASE_H
#define AFTERLINK_CASE_H

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

/* A checksum step: order and value both count. */
static inline unsigned mix(unsigned sum, unsigned value) {
    return (sum ^ value) * 0x01000193u + (sum >> 13);
}

/* Hides a value from the optimizer. */
static inline unsigned opaque(unsigned value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

#endif
