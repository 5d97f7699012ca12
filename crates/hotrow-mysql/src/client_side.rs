//! The gateway's side of a client's socket: accepted, and under TLS with the gateway's certificate.

use bytes::BytesMut;
use hotrow_connect::net;
use hotrow_connect::net::stream::HandshakeError;
use hotrow_gateway::tls::Server;
use hotrow_mysql_client::Socket;
use tokio::net::TcpStream;

/// The socket of a client that has connected.
pub fn accepted(stream: TcpStream) -> Socket {
    let (read, write) = net::tcp_halves(stream);
    Socket { read, write, arrived: BytesMut::new() }
}

/// Goes on under TLS, for which the client has asked. It may have begun already.
pub async fn serve_tls(client: Socket, tls: &Server) -> Result<Socket, HandshakeError> {
    let (read, write, ..) = tls.handshake(client.read, client.write, &client.arrived).await?;
    Ok(Socket { read, write, arrived: BytesMut::new() })
}
