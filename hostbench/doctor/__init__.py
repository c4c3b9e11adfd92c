"""`hostbench doctor`: what on this host disturbs or limits measurements.

Every check is a row of a table: each topic is a module with its `CHECKS`, and a subsystem adds its
own (hostbench.model.subsystem). A check only reads; nothing here writes, locks, connects or changes
a setting.
"""
