//! The three ways to ask: at a rate, in loops, one by one.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use koboshi_bench::clock::{self, Alarm};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::ask::Asks;
use crate::exchange::Answer;
use crate::tally::{Row, Tally};

/// Idle connections, the last used first.
type Pool = Rc<RefCell<Vec<TcpStream>>>;

/// A fixed rate. What comes before `warm` seconds have passed is not measured.
pub(crate) async fn at_rate(asks: Asks, rate: f64, seconds: f64, warm: f64, rows: bool) -> io::Result<()> {
    let (asks, pool, tally) = (Rc::new(asks), Pool::default(), Rc::new(RefCell::new(Tally::default())));
    let alarm = Alarm::new()?;
    let (start, step) = (clock::now(), nanos(1.0 / rate));
    let measured = start + nanos(warm);
    let end = measured + nanos(seconds);
    let mut tasks = Vec::new();
    for number in 0.. {
        let due = start + step * number;
        if due >= end {
            break;
        }
        alarm.until(due).await?;
        let (asks, pool, tally) = (Rc::clone(&asks), Rc::clone(&pool), Rc::clone(&tally));
        tasks.push(spawn_local(async move {
            let request = asks.numbered(usize::try_from(number).unwrap_or(usize::MAX));
            let row = one(&asks, &pool, &request, due).await;
            if due >= measured {
                tally.borrow_mut().add(row);
            }
        }));
    }
    for task in tasks {
        task.await?;
    }
    print(&tally.borrow().json(&asks, seconds, rows));
    Ok(())
}

/// Each connection asks again as soon as it is answered.
pub(crate) async fn in_loops(asks: Asks, connections: usize, seconds: f64) -> io::Result<()> {
    let (asks, tally) = (Rc::new(asks), Rc::new(RefCell::new(Tally::default())));
    let start = clock::now();
    let end = start + nanos(seconds);
    let tasks: Vec<_> = (0..connections)
        .map(|number| {
            let (asks, tally, pool) = (Rc::clone(&asks), Rc::clone(&tally), Pool::default());
            spawn_local(async move {
                let request = asks.numbered(number);
                while clock::now() < end {
                    let row = one(&asks, &pool, &request, clock::now()).await;
                    tally.borrow_mut().add(row);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    let took = std::time::Duration::from_nanos(clock::now() - start).as_secs_f64();
    print(&tally.borrow().json(&asks, took, false));
    Ok(())
}

/// This many requests, `together` at a time, each with a number of its own.
pub(crate) async fn one_by_one(asks: Asks, count: usize, together: usize) -> io::Result<()> {
    let (asks, tally) = (Rc::new(asks), Rc::new(RefCell::new(Tally::default())));
    let next = Rc::new(std::cell::Cell::new(0));
    let start = clock::now();
    let tasks: Vec<_> = (0..together.max(1))
        .map(|_| {
            let (asks, tally, next) = (Rc::clone(&asks), Rc::clone(&tally), Rc::clone(&next));
            spawn_local(async move {
                while next.get() < count {
                    let number = next.replace(next.get() + 1);
                    let row = one(&asks, &Pool::default(), &asks.numbered(number), clock::now()).await;
                    tally.borrow_mut().add(row);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    let took = std::time::Duration::from_nanos(clock::now() - start).as_secs_f64();
    print(&tally.borrow().json(&asks, took, true));
    Ok(())
}

/// One request. A pooled connection that the server has closed meanwhile is replaced once, as every client does.
async fn one(asks: &Asks, pool: &Pool, request: &[u8], due: u64) -> Row {
    let mut answer = Answer::of(asks.dialect);
    let ended = tokio::time::timeout(asks.timeout, async {
        let pooled = pool.borrow_mut().pop();
        if let Some(mut socket) = pooled {
            match answer.take(&mut socket, request, asks.stream).await {
                Err(_) if answer.status == 0 => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(socket),
            }
        }
        let mut socket = TcpStream::connect(asks.address).await?;
        socket.set_nodelay(true)?;
        answer.take(&mut socket, request, asks.stream).await?;
        Ok(socket)
    })
    .await;
    let over = clock::now();
    let error = match ended {
        Ok(Ok(socket)) => {
            if answer.reusable {
                pool.borrow_mut().push(socket);
            }
            None
        }
        Ok(Err(error)) => Some(format!("{:?}", error.kind())),
        Err(_) => Some("given up".to_owned()),
    };
    Row { due, over, answer, error }
}

/// One line of JSON.
pub(crate) fn print(result: &serde_json::Value) {
    use std::io::Write as _;
    // The parent process may have closed its end.
    let _left = writeln!(io::stdout(), "{result}");
}

fn nanos(seconds: f64) -> u64 {
    u64::try_from(std::time::Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX)
}
