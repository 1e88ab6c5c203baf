/* The memory of a fabric's parts: pieces that are given back. */
#include <string.h>

#include "sim/arena.h"
#include "testbench.h"

static bool is_zeroed(const uint8_t *piece, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (piece[i])
            return false;
    return true;
}

TEST(given_back_piece_is_taken_again_zeroed)
{
    struct arena arena = {0};
    uint8_t *pieces[3];
    for (int i = 0; i < 3; i++)
        memset(pieces[i] = arena_take(&arena, 10, 100), 0xFF, 1000);
    const uint8_t *fresh = arena.fresh;
    for (int i = 0; i < 3; i++)
        arena_give_back(&arena, pieces[i], 10, 100);
    for (int i = 2; i >= 0; i--) {
        uint8_t *again = arena_take(&arena, 1, 1000);
        EXPECT(again == pieces[i]);
        EXPECT(is_zeroed(again, 1000));
    }
    EXPECT(arena.fresh == fresh);
    EXPECT(arena_take(&arena, 10, 100) && arena.fresh != fresh);
    arena_free(&arena);
}

TEST(spare_pieces_serve_only_their_own_size)
{
    struct arena arena = {0};
    enum { SIZES = 5 };
    uint8_t *pieces[SIZES][2];
    for (size_t size = 0; size < SIZES; size++)
        for (int i = 0; i < 2; i++)
            pieces[size][i] = arena_take(&arena, 1, 64 * (size + 1));
    for (size_t size = 0; size < SIZES; size++)
        for (int i = 0; i < 2; i++)
            arena_give_back(&arena, pieces[size][i], 1, 64 * (size + 1));
    const uint8_t *fresh = arena.fresh;
    static const size_t order[SIZES] = {2, 0, 4, 1, 3};
    for (int i = 1; i >= 0; i--)
        for (size_t at = 0; at < SIZES; at++)
            EXPECT(arena_take(&arena, 1, 64 * (order[at] + 1)) == pieces[order[at]][i]);
    EXPECT(arena.fresh == fresh);
    arena_give_back(&arena, NULL, 1, 64);
    EXPECT(arena_take(&arena, 1, 64 * (SIZES + 1)) && arena.fresh != fresh);
    arena_free(&arena);
}

MAIN(RUN(given_back_piece_is_taken_again_zeroed), RUN(spare_pieces_serve_only_their_own_size))
