"""`mqadmin`: RocketMQ's admin tool, command for command, over `core_broker.client`.

    catalog   name, summary and module of every command
    cli       command lookup and help
    command   option types, common options, running a command, errors to exit codes
    session   state of one run: admin client, output, failures, --dry-run
    output    Java's columns for people, JSON for programs

The other files hold the commands, grouped by noun, and the texts printed by commands.
docs/mqadmin.md is the manual for users.
"""

from core_broker.trace_package import provide_trace_package

provide_trace_package()
