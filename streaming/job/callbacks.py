"""The port on which Spark's JVM calls the functions of the driver: it asks for the gateway's secret, as the JVM's own port does.

PySpark opens it without one: any user of the host could call the function that receives a micro-batch. py4j can send a secret on such
calls, but forgets it when it learns the port.
"""

from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started


def guard(gateway: Any) -> None:
    """Open the port before Spark does, and tell both sides the secret.

    Args:
        gateway: py4j's, with the JVM that was just connected.

    Raises:
        Py4JError: the JVM has another py4j than this one, or is gone.
    """
    secret = gateway.gateway_parameters.auth_token
    gateway.callback_server_parameters.auth_token = secret
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    jvm, server = gateway.jvm, JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    java = server.getGateway()
    seconds, factory = jvm.java.util.concurrent.TimeUnit.SECONDS, jvm.javax.net.SocketFactory.getDefault()
    known = java.getCallbackClient()  # knows the port alone
    client = jvm.py4j.PythonClient(
        *(java, None, known.getPort(), known.getAddress(), _IDLE_SECONDS, seconds, factory),
        *(known.getJavaServer(), True, known.getReadTimeout(), secret),
    )
    field = jvm.java.lang.Class.forName("py4j.Gateway").getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(java, client)


_IDLE_SECONDS = 30
"""How long py4j keeps a connection that nobody uses; its own default."""
