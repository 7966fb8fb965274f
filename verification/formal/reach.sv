// What a cover statement becomes where the question is whether it can be reached: an assertion to be refuted.
(* techmap_celltype = "$cover" *)
module reach (input A, EN);
    always @* assert (!(A && EN));
endmodule
