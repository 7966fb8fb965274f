"""What simulations of the exported core have seen: handshakes of the bus, lines and toggles of the Verilog."""
