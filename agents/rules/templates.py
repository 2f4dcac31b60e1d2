"""The answers we give, by language and occasion. `{order}` and `{status}` are filled from the shop's own data."""

from enum import StrEnum


class Occasion(StrEnum):
    """What an answer is for."""

    STATUS = "status"  #: here is where your order stands
    WHICH_ORDER = "which_order"  #: please name the order
    REFUND = "refund"  #: we have your request
    SORRY = "sorry"  #: we are looking into it
    INVOICE = "invoice"  #: it is on its way to you
    EMPTY = "empty"  #: your mail had no text
    APPLICATION = "application"  #: we have it
    THANKS = "thanks"


#: These promise that people do something, so a team takes the mail besides.
PROMISES = {Occasion.REFUND, Occasion.SORRY, Occasion.INVOICE, Occasion.APPLICATION}

GREETING = {"en": "Hello", "de": "Guten Tag", "fr": "Bonjour", "es": "Hola", "it": "Buongiorno"}
CLOSING = {
    "en": "Kind regards\nThe customer team",
    "de": "Mit freundlichen Grüßen\nIhr Kundenteam",
    "fr": "Bien cordialement\nVotre équipe clients",
    "es": "Un saludo cordial\nSu equipo de atención al cliente",
    "it": "Cordiali saluti\nIl servizio clienti",
}
NO_SUBJECT = {
    "en": "Your message",
    "de": "Ihre Nachricht",
    "fr": "Votre message",
    "es": "Su mensaje",
    "it": "Il Suo messaggio",
}

#: The shop's word for where an order stands.
STATUS = {
    "en": {},  # as it is
    "de": {
        "shipped": "versandt",
        "in preparation": "in Vorbereitung",
        "delivered": "zugestellt",
        "cancelled": "storniert",
    },
    "fr": {"shipped": "expédiée", "in preparation": "en préparation", "delivered": "livrée", "cancelled": "annulée"},
    "es": {
        "shipped": "enviado",
        "in preparation": "en preparación",
        "delivered": "entregado",
        "cancelled": "cancelado",
    },
    "it": {
        "shipped": "spedito",
        "in preparation": "in preparazione",
        "delivered": "consegnato",
        "cancelled": "annullato",
    },
}

TEXTS: dict[Occasion, dict[str, str]] = {
    Occasion.STATUS: {
        "en": "Your order {order} is: {status}. If that is not what you see, please answer this mail.",
        "de": "Ihre Bestellung {order} ist: {status}. Wenn das nicht stimmt, antworten Sie bitte auf diese Nachricht.",
        "fr": "Votre commande {order} est : {status}. Si ce n'est pas le cas, merci de répondre à ce message.",
        "es": "Su pedido {order} está: {status}. Si no es así, responda por favor a este mensaje.",
        "it": "Il Suo ordine {order} è: {status}. Se non è così, risponda per favore a questo messaggio.",
    },
    Occasion.WHICH_ORDER: {
        "en": "So that we can help you, please send us the number of your order. It is in the mail that confirmed it.",
        "de": "Damit wir Ihnen helfen können, senden Sie uns bitte die Nummer der Bestellung. Sie steht in der "
        "Bestätigung.",
        "fr": "Pour que nous puissions vous aider, merci de nous envoyer le numéro de votre commande. Il est dans le "
        "message de confirmation.",
        "es": "Para que podamos ayudarle, envíenos por favor el número de su pedido. Está en el mensaje de "
        "confirmación.",
        "it": "Per poterLa aiutare, ci mandi per favore il numero del Suo ordine. È nel messaggio di conferma.",
    },
    Occasion.REFUND: {
        "en": "We have your request about order {order}. A colleague will look at it and write to you within two "
        "working days.",
        "de": "Ihre Anfrage zur Bestellung {order} ist bei uns. Wir prüfen sie und schreiben Ihnen in den nächsten "
        "zwei Werktagen.",
        "fr": "Nous avons bien reçu votre demande sur la commande {order}. Nous vous répondons dans les deux "
        "jours ouvrables.",
        "es": "Hemos recibido su solicitud sobre el pedido {order}. Le responderemos en los próximos dos días "
        "laborables.",
        "it": "Abbiamo ricevuto la Sua richiesta per l'ordine {order}. Le risponderemo nei prossimi due giorni "
        "lavorativi.",
    },
    Occasion.SORRY: {
        "en": "We are sorry about this. A colleague will look into it and write to you within two working days.",
        "de": "Das tut uns leid. Wir gehen der Sache nach und schreiben Ihnen in den nächsten zwei Werktagen.",
        "fr": "Nous sommes désolés pour ce que vous avez vécu. Nous vous répondons dans les deux jours ouvrables.",
        "es": "Lamentamos lo que ha pasado. Le responderemos en los próximos dos días laborables.",
        "it": "Ci dispiace per quello che è successo. Le risponderemo nei prossimi due giorni lavorativi.",
    },
    Occasion.INVOICE: {
        "en": "We will send the invoice of order {order} to you at this address by the end of the next working day.",
        "de": "Die Rechnung der Bestellung {order} senden wir Ihnen bis zum Ende des nächsten Werktags an diese "
        "Adresse.",
        "fr": "Nous vous envoyons la facture de la commande {order} à cette adresse avant la fin du prochain "
        "jour ouvrable.",
        "es": "Le enviaremos la factura del pedido {order} a esta dirección antes de que acabe el próximo día "
        "laborable.",
        "it": "Le manderemo la fattura dell'ordine {order} a questo indirizzo entro la fine del prossimo giorno "
        "lavorativo.",
    },
    Occasion.EMPTY: {
        "en": "Your message reached us without a text. What can we do for you?",
        "de": "Ihre Nachricht ist ohne Text bei uns angekommen. Was können wir für Sie tun?",
        "fr": "Votre message nous est arrivé sans texte. Que pouvons-nous faire pour vous ?",
        "es": "Su mensaje nos ha llegado sin texto. ¿Qué podemos hacer por usted?",
        "it": "Il Suo messaggio è arrivato senza testo. Che cosa possiamo fare per Lei?",
    },
    Occasion.APPLICATION: {
        "en": "Thank you for your application. We have received it, and our people team will write to you.",
        "de": "Vielen Dank für die Bewerbung. Sie ist bei uns angekommen, und unser Personalteam schreibt Ihnen.",
        "fr": "Merci pour votre candidature. Nous l'avons bien reçue, et notre équipe vous répondra.",
        "es": "Gracias por su candidatura. La hemos recibido, y nuestro equipo le escribirá.",
        "it": "Grazie per la Sua candidatura. L'abbiamo ricevuta, e il nostro ufficio del personale Le scriverà.",
    },
    Occasion.THANKS: {
        "en": "Thank you for your kind words. It is good to hear that you are happy with us.",
        "de": "Vielen Dank für die freundlichen Worte. Es ist schön zu hören, dass Sie mit uns zufrieden sind.",
        "fr": "Merci pour votre message. Nous sommes heureux que vous soyez satisfait de nous.",
        "es": "Gracias por sus palabras. Nos alegra saber que está contento con nosotros.",
        "it": "Grazie per le Sue parole. Siamo felici di sapere che è contento di noi.",
    },
}
