/* Routes that a switch is told before they are in force. */
#include "switch/route.h"

#include "testbench.h"

TEST(routes_change_in_order_of_time)
{
    struct routes routes = {0};
    const uint16_t host = 5, first = 1, second = 2, third = 3;
    EXPECT(routes_add_later(&routes, 300, &host, 1, &third, 1));
    EXPECT(routes_add_later(&routes, 100, &host, 1, &first, 1));
    EXPECT(routes_add_later(&routes, 200, &host, 1, &first, 1));
    EXPECT(routes_add_later(&routes, 200, &host, 1, &second, 1)); /* the later call counts */
    EXPECT_EQUAL(100, routes_change(&routes, 50));
    EXPECT_EQUAL(200, routes_change(&routes, 100));
    EXPECT_EQUAL(first, routes.ports[routes_find(&routes, host)->first]);
    EXPECT_EQUAL(300, routes_change(&routes, 250));
    EXPECT_EQUAL(second, routes.ports[routes_find(&routes, host)->first]);
    EXPECT_EQUAL(NEVER, routes_change(&routes, 300));
    EXPECT_EQUAL(third, routes.ports[routes_find(&routes, host)->first]);
    routes_free(&routes);
}

MAIN(RUN(routes_change_in_order_of_time))
