"""`mqadmin`: RocketMQ's admin tool, command for command, over `core_broker.client`.

    catalog   every command's name, its one line of help and the file it is in
    cli       finds a command, prints help, turns errors into sentences and exit codes
    command   what commands are made of: options, their types, the session
    session   what a command works with: the admin client, the output, --dry-run
    output    Java's columns for people, JSON for programs

The other files are commands by noun, and the texts that they print. docs/mqadmin.md is for users.
"""
