"""The remoting protocol: codes, commands, frames, typed headers and bodies, asyncio shell."""
