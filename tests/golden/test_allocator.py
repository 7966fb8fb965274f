import pytest

from golden.allocator import Allocator


def test_ranges_never_overlap_and_stay_in_their_banks():
    allocator = Allocator("SBUF", 1024, 4, 8)
    taken = []
    for size, banks in ((10, None), (100, range(1, 2)), (200, range(1, 3)), (50, None), (8, range(0, 1)),
                        (256, range(3, 4))):
        start = allocator.take(size, banks)
        allowed = banks or range(4)
        assert start % 8 == 0
        assert allowed.start * 256 <= start
        assert start + size <= allowed.stop * 256
        assert all(start + size <= low or high <= start for low, high in taken)
        taken.append((start, start + size))
    assert allocator.take(1) == 16 + 56 + 8


def test_the_lowest_place_is_found():
    allocator = Allocator("SBUF", 1024, 4, 8)
    assert allocator.take(8, range(1, 2)) == 256
    assert allocator.take(256) == 0
    assert allocator.take(8) == 264


def test_no_room():
    allocator = Allocator("PSUM", 64, 2, 8)
    allocator.take(20, range(0, 1))
    message = r"^PSUM must have 9 bytes free in banks 0\.\.0, 32 bytes end there and 24 are taken$"
    with pytest.raises(ValueError, match=message):
        allocator.take(9, range(0, 1))
    with pytest.raises(ValueError, match=r"^banks must lie in range\(0, 2\), not range\(1, 3\)$"):
        allocator.take(1, range(1, 3))
