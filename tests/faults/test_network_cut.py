"""The network of these tests cuts those whom it should, whatever else has their local port."""

import socket

from tests.faults.network import Network
from tests.limits import SECONDS

_HOST = "127.0.0.1"
_AS_IPV6 = "::ffff:127.0.0.1"  # the system lists these after all others


def test_a_process_is_cut_off_whose_local_port_had_a_connection_to_somewhere_else() -> None:
    with (
        socket.create_server((_HOST, 0)) as elsewhere,
        socket.create_server((_HOST, 0)) as target,
        Network(target.getsockname()[1]) as network,
    ):
        closed = _connect(_HOST, 0, elsewhere.getsockname()[1])
        port = closed.getsockname()[1]
        accepted, _ = elsewhere.accept()
        closed.close()
        accepted.close()
        with _connect(_AS_IPV6, port, network.port) as connection:
            connection.settimeout(SECONDS)
            far, _ = target.accept()
            with far:
                far.sendall(b"x")
                assert connection.recv(1) == b"x"  # it is listed by now
                network.cut("python")
                assert connection.recv(1) == b""


def _connect(host: str, local_port: int, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind((host, local_port))
    connection.connect((host, port))
    return connection
