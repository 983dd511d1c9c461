"""The proof of both ends that they know the same token, without sending it (SPEC.md section 4.4).

    client                                   server
    HELLO with a nonce          ────────▶
                                ◀────────    CHALLENGE: a nonce of its own
                                ◀────────    PROOF over all bytes up to here
    checks it; PROOF over all   ────────▶    checks it
                                ◀────────    WELCOME

The server proves itself first, so a program that only listens at the address learns neither the
token nor anything that it could replay. Import from the modules; `Connection` uses them.
"""
