private import Glibc

exit(Runner.run())
