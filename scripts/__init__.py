"""What runs around the core: command line, backends, Verilog export."""
