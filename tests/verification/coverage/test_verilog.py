"""Coverage files of Verilator, and a small design whose figures are known."""

import json
from functools import partial

import pytest

from verification.coverage.verilog import Point, modules, read_points, run_covered
from verification.env.playback import Playback



def record(module, name, hits, *, instance="top"):
    fields = {"f": "x.v", "l": 3, "n": 2, "t": "toggle", "page": f"v_toggle/{module}", "o": name, "h": instance}
    return "C '" + "".join(f"\x01{key}\x02{value}" for key, value in fields.items()) + f"' {hits}"


def test_instances_of_a_module_add_up_and_the_bench_is_left_out():
    text = "\n".join(["# SystemC::Coverage-3", record("unit", "a:0->1", 3, instance="top.a"),
                      record("unit", "a:0->1", 4, instance="top.b"), record("unit", "a:1->0", 0),
                      record("bench", "a", 9)])
    points = read_points(text)
    assert points == {Point("toggle", "unit", 3, "a:0->1"): 7, Point("toggle", "unit", 3, "a:1->0"): 0}
    assert modules(points, "toggle", 1) == {"unit": (2, 1)}
    assert modules(points, "line", 1) == {}


def test_no_coverage_file():
    with pytest.raises(ValueError, match="^Coverage must be lines of the form C '...' count, not 'nonsense'$"):
        read_points("nonsense")


DESIGN = """
module design_top(input clk, input rst, input up, output reg [1:0] count);
  always @(posedge clk)
    if (rst) count <= 0;
    else if (up) count <= count + 1;
endmodule
"""


@pytest.mark.parametrize(("ups", "highest"), [([0, 0, 0], 0), ([1, 0, 0], 1), ([1, 1, 1, 0], 2)])
def test_a_counter_toggles_as_far_as_it_counts(tmp_path, ups, highest):
    ports = [*({"name": name, "direction": "input", "width": 1} for name in ("clk", "rst", "up")),
             {"name": "count", "direction": "output", "width": 2}]
    (tmp_path / "design.v").write_text(DESIGN)
    (tmp_path / "manifest.json").write_text(json.dumps(
        {"module": "design_top", "top": "counter", "files": ["design.v"], "ports": ports}))
    frames = [{"up": up} for up in ups]
    ((good, _),), points = run_covered(tmp_path, [partial(Playback, frames, ["count"])])
    assert good
    rose = {point.name for point, hits in points.items() if hits and point.name.startswith("count[")
            and point.name.endswith("0->1")}
    assert rose == {f"count[{bit}]:0->1" for bit in range(highest)}
