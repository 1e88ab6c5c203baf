/* One seed for OpenSM's random numbers.
 *
 * The engine dfsssp seeds the C library's generator with the time of day before it computes routes.
 * For each path record that a host asks for, it then draws one of the virtual lanes that the path
 * may use. So the same subnet would get other lanes every second. Here the seed is always the same.
 *
 * This library is loaded before the C library (LD_PRELOAD). srandom is the same generator. */
#include <stdlib.h>

#define SEED 1

__attribute__((visibility("default"))) void srand(unsigned seed)
{
    (void)seed;
    srandom(SEED);
}
