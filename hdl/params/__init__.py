"""Parameters of the core: number formats, configuration, instruction set, register map."""
