#include "nic/host_path.h"

static picoseconds copied(const struct host_path *path, uint32_t length)
{
    if (path->copy_rate_bps == 0)
        return 0;
    uint32_t piece = length < path->copy_piece_bytes ? length : path->copy_piece_bytes;
    return path->copy_latency_ps + serialisation(piece, path->copy_rate_bps);
}

picoseconds host_path_before(const struct host_path *path, uint32_t length, bool fetches)
{
    return path->doorbell_ps + path->read_ps + (fetches ? 0 : copied(path, length));
}

picoseconds host_path_after(const struct host_path *path, uint32_t length)
{
    return path->write_ps + copied(path, length);
}
