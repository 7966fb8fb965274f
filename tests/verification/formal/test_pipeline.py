import pytest

from verification.formal.pipeline import Pipeline
from verification.formal.solver import ask

TWO_STAGES = """
module stage(input clk, input [7:0] a, b, output reg [7:0] sum);
  always @(posedge clk) sum <= a + b;
endmodule
module unit(input clk, rst, input [7:0] a, b, output reg [8:0] o, output reg odd);
  wire [7:0] sum;
  stage stage(clk, a, b, sum);
  always @(posedge clk)
    if (rst) begin o <= 0; odd <= 0; end
    else begin o <= {1'b1, sum}; odd <= sum[0] ^ MEMORY; end
endmodule
"""
FEED_FORWARD = TWO_STAGES.replace("MEMORY", "0")


def outcome(pipeline, goal):
    return ask(f"{pipeline.formula}\n(assert (not {goal}))", limit=20).outcome


def sum_is_right(pipeline, step):
    a, b = pipeline.wire("a", 0), pipeline.wire("b", 0)
    return f"(= {pipeline.wire('o', step)} (concat #b1 (bvadd {a} {b})))"


def parity_is_right(pipeline, step):
    a, b = pipeline.wire("a", 0), pipeline.wire("b", 0)
    return f"(= {pipeline.wire('odd', step)} (= ((_ extract 0 0) (bvadd {a} {b})) #b1))"


@pytest.mark.parametrize("goal", [sum_is_right, parity_is_right])
def test_output_after_the_latency_is_a_function_of_the_input(goal):
    pipeline = Pipeline(FEED_FORWARD, "unit", 3)
    assert outcome(pipeline, goal(pipeline, 2)) == "unsat"
    assert outcome(pipeline, goal(pipeline, 1)) == "sat"
    assert outcome(pipeline, goal(pipeline, 3)) == "sat"


def test_an_earlier_input_that_disturbs_is_found():
    pipeline = Pipeline(TWO_STAGES.replace("MEMORY", "odd"), "unit", 2)
    assert outcome(pipeline, sum_is_right(pipeline, 2)) == "unsat"
    assert outcome(pipeline, parity_is_right(pipeline, 2)) == "sat"


def test_a_fault():
    pipeline = Pipeline(FEED_FORWARD, "unit", 2, change="connect -set sum[3] 1'0")
    assert outcome(pipeline, sum_is_right(pipeline, 2)) == "sat"


def test_a_cut_is_free_and_can_be_given_back():
    pipeline = Pipeline(FEED_FORWARD, "unit", 2, change="cutpoint t:$add", name="cut")
    goal = sum_is_right(pipeline, 2)
    total = f"(bvadd {pipeline.wire('a', 0)} {pipeline.wire('b', 0)})"
    assert outcome(pipeline, goal) == "sat"
    assert outcome(pipeline, f"(=> (= {pipeline.cut(0)} {total}) {goal})") == "unsat"
    assert outcome(pipeline, f"(=> (= {pipeline.cut(1)} {total}) {goal})") == "sat"


def test_widths():
    pipeline = Pipeline(FEED_FORWARD, "unit", 1)
    assert [pipeline.width(name) for name in ("o", "stage.sum", "odd")] == [9, 8, 1]


def test_verilog_that_yosys_refuses():
    with pytest.raises(RuntimeError, match="Yosys ended"):
        Pipeline("module unit(", "unit", 1)
